# The second half of one program with `setup_values.py`: gives values to the expressions of a setup.py without running it.
# Statements are followed in their order, functions of the script where they are called. Modules of others are names only, and
# what they return stays unknown. Prints one JSON object.

TEXT_METHODS = set("strip lstrip rstrip split rsplit splitlines replace lower upper title startswith endswith format join "
                   "partition rpartition decode encode count find zfill removeprefix removesuffix".split())
PATH_FUNCTIONS = {"join", "dirname", "basename", "abspath", "realpath", "normpath", "exists", "isfile", "isdir", "splitext", "relpath", "expanduser"}
COMPARISONS = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a is b, ast.IsNot: lambda a, b: a is not b,
}
# A machine that wheels are built on: Linux, and the oldest Python that they are for.
CONSTANTS = {"sys.platform": "linux", "os.name": "posix", "os.sep": "/", "sys.version_info": (3, 11, 0, "final", 0),
             "sys.version_info.major": 3, "sys.version_info.minor": 11, "typing.TYPE_CHECKING": False}
CONSTANTS.update({"re." + name: int(getattr(re, name)) for name in "A ASCII I IGNORECASE M MULTILINE S DOTALL X VERBOSE".split()})
SYSTEMS = {"platform.system": "Linux", "platform.python_implementation": "CPython", "sys.platform.lower": "linux"}


class Reader:
    def __init__(self):
        self.steps, self.depth, self.attempts = 0, 0, 0
        self.setups, self.modules, self.returns, self.places = [], {}, [], []

    # Files

    def module(self, path):
        """The names of a file of the project; read once."""
        if path in self.modules:
            return self.modules[path]
        source = content(path) or ""
        module = self.modules[path] = Module(path, source.splitlines())
        module.names = {"__file__": Place(path), "__name__": "__main__" if path == "setup.py" else path[:-3].replace("/", ".")}
        module.tree = ast.parse(source)
        for statement in module.tree.body:
            # That this checkout would be refused, for a submodule that is not there, is no reason to read no further.
            self.block([statement], module.names, module)
        return module

    def local(self, name, module):
        """A module of the project by its name."""
        stem, own = name.replace(".", "/"), os.path.dirname(module.file)
        for place in dict.fromkeys(["", own, *self.places, "src"]):
            for path in (stem + ".py", stem + "/__init__.py"):
                path = os.path.join(place, path)
                if os.path.isfile(os.path.join(ROOT, path)) and len(self.modules) < 12:
                    try:
                        return self.module(path)
                    except (SyntaxError, ValueError, RecursionError):
                        return None
        return None

    def unknown(self, node, module, why=""):
        try:
            source = " ".join((ast.get_source_segment("\n".join(module.lines), node) or "").split())
        except (IndexError, ValueError):
            source = ""
        return Unknown(source[:LONGEST_SOURCE], module.file, getattr(node, "lineno", 1), why)

    # Statements. A block gives None, or how it ended: ("return", value), ("leave",) or ("skip",).

    def block(self, statements, names, module):
        for statement in statements:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise TooLong()
            visit = getattr(self, "do_" + type(statement).__name__, None)
            ended = visit(statement, names, module) if visit else None
            if ended:
                return ended
        return None

    def do_Expr(self, node, names, module):
        value = self.value(node.value, names, module)
        if isinstance(value, Made) and value.name in ("sys.exit", "exit", "quit"):
            return ("leave",)
        return None

    def do_Raise(self, node, names, module):
        return ("leave",)

    def do_Break(self, node, names, module):
        return ("skip",)

    do_Continue = do_Break

    def do_Return(self, node, names, module):
        return ("return", self.value(node.value, names, module) if node.value else None)

    def do_FunctionDef(self, node, names, module):
        names[node.name] = Function(node, module)

    def do_ClassDef(self, node, names, module):
        bases = [base.name for base in (self.value(base, names, module) for base in node.bases) if isinstance(base, (Symbol, Command))]
        methods = [child.name for child in node.body if isinstance(child, ast.FunctionDef)]
        names[node.name] = Command(node.name, bases, methods, module.file, node.lineno)

    def do_Import(self, node, names, module):
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.split(".")[0]
            found = self.local(alias.name, module)
            names[alias.asname or name] = found or Symbol(name)

    def do_ImportFrom(self, node, names, module):
        name = node.module or ""
        package = os.path.dirname(module.file).replace("/", ".") if node.level else ""
        full = ".".join(part for part in (package, name) if part)
        found = self.local(full, module) if full else None
        for alias in node.names:
            if found and alias.name in found.names:
                names[alias.asname or alias.name] = found.names[alias.name]
            elif full + "." + alias.name in CONSTANTS:
                names[alias.asname or alias.name] = CONSTANTS[full + "." + alias.name]
            elif alias.name == "*" and found:
                names.update({key: value for key, value in found.names.items() if not key.startswith("_")})
            else:
                inner = self.local(full + "." + alias.name, module) if found or full.count("/") else None
                names[alias.asname or alias.name] = inner or Symbol(full + "." + alias.name)

    def do_Assign(self, node, names, module):
        value = self.value(node.value, names, module)
        for target in node.targets:
            self.bind(target, value, names, module)

    def do_AnnAssign(self, node, names, module):
        if node.value is not None:
            self.bind(node.target, self.value(node.value, names, module), names, module)

    def do_AugAssign(self, node, names, module):
        old = self.value(node.target, names, module)
        new = self.value(node.value, names, module)
        if isinstance(old, list) and isinstance(node.op, ast.Add) and len(old) < 20 * MOST_ITEMS:
            old.extend(self.items(new, node.value, module))
        else:
            self.bind(node.target, self.combined(node.op, old, new, node, module), names, module)

    def bind(self, target, value, names, module):
        value = bare(value)
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value if isinstance(value, (list, tuple)) and len(value) == len(target.elts) else None
            for index, inner in enumerate(target.elts):
                self.bind(inner, values[index] if values else self.unknown(inner, module), names, module)
        elif isinstance(target, ast.Subscript):
            holder, key = self.value(target.value, names, module), self.value(self.index(target), names, module)
            if isinstance(holder, dict) and isinstance(key, str):
                holder[key] = value
            elif isinstance(holder, list) and isinstance(target.slice, ast.Slice):
                holder[:] = value if isinstance(value, list) else [Spread(self.unknown(target, module))]
        elif isinstance(target, ast.Attribute):
            holder = self.value(target.value, names, module)
            if isinstance(holder, Made):
                holder.keywords[target.attr] = value

    def index(self, node):
        return getattr(node.slice, "value", node.slice) if type(node.slice).__name__ == "Index" else node.slice

    def do_If(self, node, names, module):
        truth = self.truth(self.value(node.test, names, module))
        if truth is not None:
            return self.block(node.body if truth else node.orelse, names, module)
        when = self.unknown(node.test, module).source
        before = len(self.setups)
        other = copy.deepcopy(names)
        ended, other_ended = self.block(node.body, names, module), self.block(node.orelse, other, module)
        for call in self.setups[before:]:
            call["when"].insert(0, when)
        if ended and other_ended:
            if ended[0] == other_ended[0] == "return":
                return ("return", merged(when, ended[1], other_ended[1], self.unknown(node, module, "it depends on " + when)))
            return ended if ended[0] == "return" else other_ended
        if ended or other_ended:
            if (ended or other_ended)[0] == "return" and self.returns:
                self.returns[-1].append((when if ended else "not (" + when + ")", (ended or other_ended)[1]))
            if ended:
                names.clear()
                names.update(other)
            return None
        for name in list(names) + [name for name in other if name not in names]:
            if name in names and name in other:
                unknown = Unknown(name, module.file, node.lineno, "it depends on " + when)
                names[name] = merged(when, names[name], other[name], unknown)
            elif name in other:
                names[name] = other[name]
        return None

    def do_Try(self, node, names, module):
        self.attempts += 1
        try:
            ended = self.block(node.body, names, module)
        except Absent:
            ended = self.block(node.handlers[0].body, names, module) if node.handlers else None
            return ended or self.block(node.finalbody, names, module)
        finally:
            self.attempts -= 1
        return ended or self.block(node.orelse, names, module) or self.block(node.finalbody, names, module)

    def do_With(self, node, names, module):
        for item in node.items:
            value = self.value(item.context_expr, names, module)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, names, module)
        return self.block(node.body, names, module)

    def do_For(self, node, names, module):
        values = self.value(node.iter, names, module)
        if isinstance(values, Handle):
            values = self.lines_of(values)
        if isinstance(values, dict):
            values = list(values)
        if not isinstance(values, (list, tuple)) or len(values) > MOST_ITEMS:
            values = [self.unknown(node.target, module)]
        for value in values:
            self.bind(node.target, bare(value), names, module)
            ended = self.block(node.body, names, module)
            if ended and ended[0] == "return":
                return ended
        return None

    def do_While(self, node, names, module):
        self.block(node.body, names, module)

    def lines_of(self, handle):
        text = content(handle.path)
        return text.splitlines(keepends=True) if text is not None else []

    # Expressions

    def truth(self, value):
        if isinstance(value, (Unknown, Made, Symbol, Module, Function, Command, Handle)):
            return None
        if isinstance(value, (list, tuple)) and value and all(isinstance(item, (Conditional, Spread)) for item in value):
            return None
        return bool(value)

    def value(self, node, names, module):
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLong()
        visit = getattr(self, "of_" + type(node).__name__, None)
        if visit is None or self.depth > 40:
            return self.unknown(node, module)
        self.depth += 1
        try:
            return visit(node, names, module)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, re.error, OSError, UnicodeError):
            return self.unknown(node, module)
        except Absent as absent:
            if self.attempts:
                raise
            return self.unknown(node, module, "{} is not there".format(absent))
        finally:
            self.depth -= 1

    def of_Constant(self, node, names, module):
        return node.value

    def of_Name(self, node, names, module):
        for scope in (names, module.names):
            if node.id in scope:
                return scope[node.id]
        return {"True": True, "False": False, "None": None}.get(node.id, Symbol(node.id))

    def of_List(self, node, names, module):
        found = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                found.extend(self.items(self.value(item.value, names, module), item, module))
            else:
                found.append(self.value(item, names, module))
        return found

    def of_Tuple(self, node, names, module):
        return tuple(self.of_List(node, names, module))

    of_Set = of_List

    def of_Dict(self, node, names, module):
        found = {}
        for key, value in zip(node.keys, node.values):
            value = self.value(value, names, module)
            if key is None:
                found.update(value if isinstance(value, dict) else {"**": value})
                continue
            name = self.value(key, names, module)
            found[str(name) if is_known(name) else self.unknown(key, module).source] = value
        return found

    def of_JoinedStr(self, node, names, module):
        parts = []
        for part in node.values:
            value = self.value(part.value if isinstance(part, ast.FormattedValue) else part, names, module)
            if not is_known(value):
                return self.unknown(node, module)
            parts.append(str(value))
        return "".join(parts)

    def of_BinOp(self, node, names, module):
        return self.combined(node.op, self.value(node.left, names, module), self.value(node.right, names, module), node, module)

    def combined(self, op, one, other, node, module):
        sizes = [len(value) for value in (one, other) if isinstance(value, (list, tuple, str))]
        if sum(sizes) > LARGEST_TEXT or (not isinstance(one, str) and sum(sizes) > 20 * MOST_ITEMS):
            return self.unknown(node, module, "it grows too large")
        if isinstance(op, ast.Add) and (isinstance(one, (list, tuple)) or isinstance(other, (list, tuple))):
            return self.items(one, node, module) + self.items(other, node, module)
        if not (is_known(one) and is_known(other)):
            return self.unknown(node, module)
        if isinstance(op, ast.BitOr) and isinstance(one, int):
            return one | other
        if isinstance(op, ast.Div) and isinstance(one, str):
            return Place(os.path.join(one, other))
        if isinstance(op, ast.Add):
            return one + other
        if isinstance(op, ast.Mod):
            return one % other
        if isinstance(op, ast.Mult) and (isinstance(one, int) or isinstance(other, int)) and max(len(str(one)), len(str(other))) < 9:
            return self.unknown(node, module) if isinstance(one, str) or isinstance(other, str) else one * other
        return self.unknown(node, module)

    def items(self, value, node, module):
        """The items of a list that may be unknown."""
        if isinstance(value, (list, tuple)):
            return list(value)
        if isinstance(value, Made):
            return [Spread(value)] if value.name.rsplit(".", 1)[-1] != "cythonize" else [value]
        return [Spread(value if isinstance(value, Unknown) else self.unknown(node, module))]

    def of_BoolOp(self, node, names, module):
        values = [self.value(child, names, module) for child in node.values]
        truths = [self.truth(value) for value in values]
        decides = isinstance(node.op, ast.Or)
        for value, truth in zip(values, truths):
            if truth is decides:
                return value
            if truth is None:
                # Whatever the unknown ones are, one that decides is enough.
                return decides if decides in truths else self.unknown(node, module)
        return values[-1]

    def of_UnaryOp(self, node, names, module):
        value = self.value(node.operand, names, module)
        if isinstance(node.op, ast.Not) and self.truth(value) is not None:
            return not self.truth(value)
        if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
            return -value
        return self.unknown(node, module)

    def of_Compare(self, node, names, module):
        values = [self.value(child, names, module) for child in [node.left] + node.comparators]
        if not all(is_known(value) for value in values):
            return self.unknown(node, module)
        return all(COMPARISONS[type(op)](one, other) for op, one, other in zip(node.ops, values, values[1:]))

    def of_IfExp(self, node, names, module):
        truth = self.truth(self.value(node.test, names, module))
        if truth is not None:
            return self.value(node.body if truth else node.orelse, names, module)
        one, other = self.value(node.body, names, module), self.value(node.orelse, names, module)
        when = self.unknown(node.test, module).source
        return merged(when, one, other, self.unknown(node, module, "it depends on " + when))

    def of_Subscript(self, node, names, module):
        holder = self.value(node.value, names, module)
        if isinstance(node.slice, ast.Slice) and is_known(holder):
            bounds = [self.value(part, names, module) if part else None for part in (node.slice.lower, node.slice.upper, node.slice.step)]
            return holder[slice(*bounds)]
        key = self.value(self.index(node), names, module)
        if isinstance(holder, Symbol) and holder.name == "os.environ":
            return self.unknown(node, module, "it is an environment variable")
        return bare(holder[key]) if isinstance(holder, (dict, list, tuple, str, re.Match)) else self.unknown(node, module)

    def of_Attribute(self, node, names, module):
        holder = self.value(node.value, names, module)
        if isinstance(holder, Symbol):
            name = holder.name + "." + node.attr
            return CONSTANTS.get(name, Symbol(name))
        if isinstance(holder, Module):
            return holder.names.get(node.attr, self.unknown(node, module))
        if isinstance(holder, tuple) and holder == CONSTANTS["sys.version_info"]:
            return {"major": 3, "minor": 11}.get(node.attr, self.unknown(node, module))
        if isinstance(holder, Made) and node.attr in holder.keywords:
            return holder.keywords[node.attr]
        if isinstance(holder, Place) and node.attr in ("parent", "name", "stem", "suffix"):
            stem, suffix = os.path.splitext(os.path.basename(holder))
            return {"parent": Place(os.path.dirname(holder)), "name": stem + suffix, "stem": stem, "suffix": suffix}[node.attr]
        if isinstance(holder, Made):
            return Symbol(holder.name + "()." + node.attr)
        return self.unknown(node, module)

    def comprehension(self, node, names, module, add):
        scope = dict(names)

        def through(generators):
            if not generators:
                add(scope)
                return True
            values = self.value(generators[0].iter, scope, module)
            values = self.lines_of(values) if isinstance(values, Handle) else list(values) if isinstance(values, dict) else values
            if not isinstance(values, (list, tuple)):
                return False
            for value in values:
                if isinstance(value, Spread):
                    return False
                self.bind(generators[0].target, bare(value), scope, module)
                tests = [self.truth(self.value(test, scope, module)) for test in generators[0].ifs]
                if False not in tests and not through(generators[1:]):
                    return False
            return True

        return through(node.generators)

    def of_ListComp(self, node, names, module):
        found = []
        is_read = self.comprehension(node, names, module, lambda scope: found.append(self.value(node.elt, scope, module)))
        return found if is_read else self.unknown(node, module)

    of_GeneratorExp = of_SetComp = of_ListComp

    def of_DictComp(self, node, names, module):
        found = {}

        def add(scope):
            found[str(self.value(node.key, scope, module))] = self.value(node.value, scope, module)

        return found if self.comprehension(node, names, module, add) else self.unknown(node, module)
