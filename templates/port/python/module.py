"""`{= module =}`: its names come from the native library of the package."""

{= import =}

globals().update({name: value for name, value in vars(_library.{= member =}).items() if not name.startswith("__")})
