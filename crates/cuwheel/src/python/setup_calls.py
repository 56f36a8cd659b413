# The last part of one program with `setup_values.py` and `setup_reader.py`: calls, and the program itself. Functions of the
# script are followed; of Python's own, those that give a value and touch nothing; any other is noted by its name.


class Script(Reader):
    def of_Call(self, node, names, module):
        if isinstance(node.func, ast.Attribute):
            holder = self.value(node.func.value, names, module)
            if not isinstance(holder, (Symbol, Module, Unknown, Command)):
                return self.method(node, holder, node.func.attr, names, module)
        callee = self.value(node.func, names, module)
        arguments, keywords = self.arguments(node, names, module)
        if isinstance(callee, Function):
            return self.function(callee, arguments, keywords, node, module)
        if isinstance(callee, Command):
            return Made(callee.name, arguments, keywords, module.file, node.lineno)
        if not isinstance(callee, Symbol):
            return self.unknown(node, module)
        name = callee.name
        if name in ("sys.path.append", "sys.path.insert"):
            self.places.extend(place for place in map(inside, arguments[-1:]) if place)
            return None
        if name in ("itertools.product", "product"):
            lists = [value for value in arguments if isinstance(value, (list, tuple))]
            return list(itertools.islice(itertools.product(*lists), MOST_ITEMS)) if len(lists) == len(arguments) else self.unknown(node, module)
        if name.rsplit(".", 1)[-1] == "setup" and name.split(".")[0] in ("setup", "setuptools", "distutils", "numpy", "skbuild", "torch"):
            self.setups.append({"keywords": keywords, "name": name, "file": module.file, "line": node.lineno, "when": []})
            return None
        if name in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
            return self.unknown(node, module, "it is an environment variable")
        if name.split(".")[0] in ("os", "pathlib", "Path", "io", "codecs", "glob", "re", "platform", "sys", "open", "textwrap", "ast"):
            return self.standard(name, arguments, keywords, node, module)
        builtin = getattr(self, "call_" + name, None)
        if builtin and "." not in name:
            return builtin(arguments, keywords, node, module, names)
        return Made(name, arguments, keywords, module.file, node.lineno)

    def arguments(self, node, names, module):
        arguments, keywords = [], {}
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                arguments.extend(self.items(self.value(argument.value, names, module), argument, module))
            else:
                arguments.append(self.value(argument, names, module))
        for word in node.keywords:
            value = self.value(word.value, names, module)
            if word.arg:
                keywords[word.arg] = value
            else:
                keywords.update(value if isinstance(value, dict) else {"**": value})
        return arguments, keywords

    def function(self, callee, arguments, keywords, node, module):
        """What a function of the script returns; the last of several that depend on what is unknown, with the others."""
        if len(self.returns) > 8:
            return self.unknown(node, module)
        definition, scope = callee.node, dict(callee.module.names)
        parameters = [parameter.arg for parameter in definition.args.args]
        defaults = dict(zip(reversed(parameters), reversed(definition.args.defaults)))
        for parameter in definition.args.kwonlyargs:
            parameters.append(parameter.arg)
        for parameter, default in zip(definition.args.kwonlyargs, definition.args.kw_defaults):
            defaults[parameter.arg] = default
        for index, parameter in enumerate(parameters):
            if index < len(arguments):
                scope[parameter] = arguments[index]
            elif parameter in keywords:
                scope[parameter] = keywords[parameter]
            elif defaults.get(parameter) is not None:
                scope[parameter] = self.value(defaults[parameter], callee.module.names, callee.module)
            else:
                scope[parameter] = self.unknown(node, module)
        self.returns.append([])
        try:
            ended = self.block(definition.body, scope, callee.module)
        finally:
            early = self.returns.pop()
        result = ended[1] if ended and ended[0] == "return" else None
        for when, value in reversed(early):
            result = merged(when, value, result, self.unknown(node, module, "it depends on " + when))
        return result

    def method(self, node, holder, name, names, module):
        arguments, keywords = self.arguments(node, names, module)
        if isinstance(holder, list):
            changed = self.list_method(holder, name, arguments, node, module)
            return changed[0] if changed else self.unknown(node, module)
        if isinstance(holder, dict):
            return self.dict_method(holder, name, arguments, keywords, node, module)
        if isinstance(holder, Handle):
            text = content(holder.path) if self.attempts or os.path.isfile(os.path.join(ROOT, holder.path)) else None
            if text is None:
                return self.unknown(node, module)
            return {"read": lambda: text, "readlines": lambda: text.splitlines(keepends=True), "readline": lambda: text.split("\n")[0], "close": lambda: None}[name]()
        if isinstance(holder, Place):
            return self.path_method(holder, name, arguments, node, module)
        if isinstance(holder, (str, bytes)) and name in TEXT_METHODS and is_known(arguments) and is_known(keywords):
            result = getattr(holder, name)(*arguments, **keywords)
            if isinstance(holder, Text) and isinstance(result, str) and name in ("strip", "rstrip", "lstrip", "replace"):
                return Text.of(result, holder.origin, holder.is_whole)
            return list(result) if isinstance(result, tuple) else result
        if isinstance(holder, re.Match) and name in ("group", "groups", "groupdict"):
            result = getattr(holder, name)(*arguments)
            origin = getattr(holder.string, "origin", "")
            return Text.of(result, origin, False) if origin and isinstance(result, str) else result
        if isinstance(holder, Made):
            if holder.name == "re.compile" and name in ("search", "match", "findall", "sub"):
                return self.standard("re." + name, holder.arguments[:1] + arguments, keywords, node, module)
            return Made(holder.name + "()." + name, arguments, keywords, module.file, node.lineno)
        return self.unknown(node, module)

    def list_method(self, holder, name, arguments, node, module):
        if name == "append":
            holder.append(arguments[0])
        elif name == "extend":
            holder.extend(self.items(arguments[0], node, module))
        elif name == "insert":
            holder.insert(arguments[0] if isinstance(arguments[0], int) else 0, arguments[1])
        elif name == "remove" and arguments[0] in holder:
            holder.remove(arguments[0])
        elif name == "copy":
            return [list(holder)]
        elif name not in ("sort", "reverse", "remove"):
            return None
        return [None]

    def dict_method(self, holder, name, arguments, keywords, node, module):
        if name == "update":
            given = arguments[0] if arguments else keywords
            holder.update(given if isinstance(given, dict) else {"**": given})
            return None
        if name == "get":
            return bare(holder.get(arguments[0], arguments[1] if len(arguments) > 1 else None)) if isinstance(arguments[0], str) else self.unknown(node, module)
        if name == "setdefault":
            return holder.setdefault(arguments[0], arguments[1])
        if name == "pop":
            return holder.pop(arguments[0], None)
        return {"keys": lambda: list(holder), "values": lambda: list(holder.values()), "copy": lambda: dict(holder),
                "items": lambda: [(key, value) for key, value in holder.items()]}[name]()

    def path_method(self, holder, name, arguments, node, module):
        if name in ("read_text", "read_bytes"):
            return content(holder)
        if name in ("resolve", "absolute", "as_posix", "expanduser", "__str__", "open"):
            return Handle(inside(holder)) if name == "open" else holder
        if name in ("joinpath", "with_suffix", "with_name"):
            return Place(os.path.join(holder, *arguments)) if name == "joinpath" else self.unknown(node, module)
        if name in ("glob", "rglob"):
            pattern = os.path.join(holder, "**" if name == "rglob" else "", arguments[0])
            found = matching(pattern, True)
            return self.unknown(node, module) if found is None else [Place(path) for path in found]
        if name in ("exists", "is_file", "is_dir"):
            return self.standard("os.path.exists", [holder], {}, node, module)
        if name == "relative_to" and inside(arguments[0]) == "":
            return holder
        if name in TEXT_METHODS and is_known(arguments):
            return getattr(str(holder), name)(*arguments)
        return self.unknown(node, module)

    def standard(self, name, arguments, keywords, node, module):
        """Functions of Python's own that only give a value."""
        if name in SYSTEMS:
            return SYSTEMS[name]
        if name == "re.compile":
            return Made(name, arguments, keywords, module.file, node.lineno)
        if not is_known(arguments):
            return self.unknown(node, module)
        if name in ("open", "io.open", "codecs.open"):
            path = inside(arguments[0])
            if path is None or not os.path.isfile(os.path.join(ROOT, path)):
                raise Absent(path)
            return Handle(path)
        if name in ("pathlib.Path", "Path", "pathlib.PurePath"):
            return Place(os.path.join(*arguments) if arguments else "")
        if name in ("os.getcwd", "pathlib.Path.cwd", "os.getcwd"):
            return Place("")
        if name in ("glob.glob", "glob.iglob", "glob"):
            found = matching(arguments[0], bool(keywords.get("recursive")))
            return self.unknown(node, module) if found is None else found
        if name in ("os.listdir",):
            inner = inside(arguments[0])
            return sorted(os.listdir(os.path.join(ROOT, inner))) if inner is not None else self.unknown(node, module)
        if name in ("re.search", "re.match", "re.findall", "re.sub"):
            flags = [value for value in keywords.values() if isinstance(value, int)]
            if re.search(r"[+*]\)[+*]", str(arguments[0])):
                return self.unknown(node, module)
            found = getattr(re, name[3:])(*arguments, *flags)
            return found
        if name == "ast.literal_eval":
            return ast.literal_eval(arguments[0])
        if name.startswith("os.path.") and name[8:] in PATH_FUNCTIONS:
            return self.path_function(name[8:], arguments, node, module)
        return Made(name, arguments, keywords, module.file, node.lineno)

    def path_function(self, name, arguments, node, module):
        if name in ("abspath", "realpath", "normpath", "expanduser"):
            return Place(inside(arguments[0]) if inside(arguments[0]) is not None else arguments[0])
        if name in ("exists", "isfile", "isdir"):
            inner = inside(arguments[0])
            return getattr(os.path, name)(os.path.join(ROOT, inner)) if inner is not None else self.unknown(node, module)
        if name == "relpath":
            return os.path.relpath(arguments[0] or ".", (arguments[1] if len(arguments) > 1 else "") or ".")
        result = getattr(os.path, name)(*arguments)
        return Place(result) if isinstance(result, str) else result

    # Functions that need no import.

    def call_len(self, arguments, keywords, node, module, names):
        return len(arguments[0]) if is_known(arguments[0]) else self.unknown(node, module)

    def call_str(self, arguments, keywords, node, module, names):
        return arguments[0] if isinstance(arguments[0], Text) else str(arguments[0]) if is_known(arguments[0]) else self.unknown(node, module)

    def call_int(self, arguments, keywords, node, module, names):
        return int(arguments[0]) if is_known(arguments[0]) else self.unknown(node, module)

    def call_list(self, arguments, keywords, node, module, names):
        value = arguments[0] if arguments else []
        value = list(value) if isinstance(value, (tuple, dict)) else value
        return list(value) if isinstance(value, list) else value if isinstance(value, Unknown) else self.unknown(node, module)

    call_set = call_sorted = call_reversed = call_iter = call_list

    def call_tuple(self, arguments, keywords, node, module, names):
        return tuple(self.call_list(arguments, keywords, node, module, names))

    def call_dict(self, arguments, keywords, node, module, names):
        first = arguments[0] if arguments else {}
        return {**(first if isinstance(first, dict) else {"**": first}), **keywords}

    def call_print(self, arguments, keywords, node, module, names):
        return None

    def call_bool(self, arguments, keywords, node, module, names):
        truth = self.truth(arguments[0])
        return self.unknown(node, module) if truth is None else truth

    def call_range(self, arguments, keywords, node, module, names):
        return list(range(*arguments))[:MOST_ITEMS]

    def call_zip(self, arguments, keywords, node, module, names):
        return [tuple(values) for values in zip(*arguments)] if all(isinstance(item, (list, tuple)) for item in arguments) else self.unknown(node, module)

    def call_enumerate(self, arguments, keywords, node, module, names):
        return list(enumerate(arguments[0])) if isinstance(arguments[0], (list, tuple)) else self.unknown(node, module)

    def call_globals(self, arguments, keywords, node, module, names):
        return module.names

    call_locals = call_globals

    def call_exec(self, arguments, keywords, node, module, names):
        """`exec` of a file of the project, for the names in it: mostly for the version."""
        source = arguments[0].arguments[0] if isinstance(arguments[0], Made) and arguments[0].arguments else arguments[0]
        if isinstance(source, Text):
            found = self.module(source.origin).names
            target = arguments[1] if len(arguments) > 1 and isinstance(arguments[1], dict) else names
            target.update({key: value for key, value in found.items() if not key.startswith("__") or key.startswith("__version") or key.startswith("__author")})
        return None


def environment(tree, file):
    """Environment variables that a file reads, wherever that is: names, defaults and lines."""

    def dotted(node):
        return dotted(node.value) + "." + node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")

    found = []
    for node in ast.walk(tree):
        name = None
        if isinstance(node, ast.Call) and dotted(node.func) in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
            name = node.args[0] if node.args else None
        elif isinstance(node, ast.Subscript) and dotted(node.value) in ("os.environ", "environ") and isinstance(getattr(node, "ctx", None), ast.Load):
            name = getattr(node.slice, "value", None) if type(node.slice).__name__ == "Index" else node.slice
        elif isinstance(node, ast.Compare) and any(dotted(other) in ("os.environ", "environ") for other in node.comparators):
            name = node.left
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            found.append({"name": name.value, "file": file, "line": node.lineno})
    return found


def facts():
    script = Script()
    problem = None
    try:
        if os.path.isfile(os.path.join(ROOT, "setup.py")):
            script.module("setup.py")
    except SyntaxError as error:
        return {"error": {"line": error.lineno or 1, "message": error.msg, "text": (error.text or "").strip()}}
    except (ValueError, RecursionError, MemoryError) as error:
        return {"error": {"line": 1, "message": str(error), "text": ""}}
    except (TooLong, Absent) as error:
        problem = "it takes too many steps" if isinstance(error, TooLong) else "it reads {}, which is not there".format(error)
    variables = [found for path, module in script.modules.items() if hasattr(module, "tree") for found in environment(module.tree, path)]
    versions = {}
    for path in json.loads(sys.argv[2]):
        try:
            names = script.module(path).names
            versions[path] = {name: encoded(value) for name, value in names.items() if isinstance(value, (str, tuple, Unknown, Made))}
        except (SyntaxError, ValueError, RecursionError, TooLong, Absent):
            continue
    setups = [{**call, "keywords": [[key, encoded(value)] for key, value in call["keywords"].items()]} for call in script.setups]
    return {"setups": setups, "variables": variables, "problem": problem, "attributes": versions}


if __name__ == "__main__":
    ROOT = sys.argv[1]
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    except (ImportError, OSError, ValueError):
        pass  # the deadline of the caller holds all the same
    sys.setrecursionlimit(6000)
    print(json.dumps(facts()))
