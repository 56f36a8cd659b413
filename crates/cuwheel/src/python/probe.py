"""What a build has to know of an interpreter, as one JSON object on stdout."""

import json
import os
import sys
import sysconfig

version = sys.version_info
print(
    json.dumps(
        {
            "implementation": sys.implementation.name,
            "version": [version.major, version.minor, version.micro],
            "release_level": version.releaselevel,
            "abi": sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag,
            "gil_disabled": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
            "platform": sysconfig.get_platform(),
            # Inside a virtual environment: the interpreter that it was made from.
            "base_executable": getattr(sys, "_base_executable", None) or sys.executable,
            "base_prefix": sys.base_prefix,
            "include": sysconfig.get_path("include"),
            "has_headers": os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h")),
        }
    )
)
