"""What Python files say, read with `ast` and never run: one JSON object a line for each file that is named.

Started as `python -I -S -c`, with the name of a file that holds a JSON array of paths. Nothing is judged here: facts are
imports, calls, assignments, conditions on sys.argv and strings, each with its line and with the conditions that it is
under. A file that cannot be parsed gives an `error`.
"""

import ast
import json
import sys

LONGEST_STRING = 2000
# Modules that left the standard library, and those of interpreters that do not list theirs (before 3.10).
FORMER = {"asynchat", "asyncore", "cgi", "crypt", "distutils", "imp", "nis", "pipes", "smtpd", "telnetlib", "tomllib", "uu"}
STANDARD = set(getattr(sys, "stdlib_module_names", sys.builtin_module_names)) | FORMER
ROUGHLY_STANDARD = ("os re io ast abc json glob copy math time shlex shutil errno types typing ctypes struct string "
                    "platform pathlib tempfile textwrap warnings itertools functools contextlib subprocess importlib "
                    "collections configparser multiprocessing threading urllib logging zipfile tarfile hashlib "
                    "operator argparse inspect traceback datetime stat site sysconfig locale socket signal random "
                    "dataclasses enum unittest codecs fnmatch gzip getpass concurrent __future__ runpy pkgutil")
if not hasattr(sys, "stdlib_module_names"):
    STANDARD |= set(ROUGHLY_STANDARD.split())


def dotted(node):
    """The name of an expression such as `a.b[...]`, or an empty text."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        outer = dotted(node.value)
        return outer + "." + node.attr if outer else node.attr
    if isinstance(node, ast.Subscript):
        return dotted(node.value) + "[]"
    if isinstance(node, ast.Call):
        return dotted(node.func) + "()"
    return ""


def text_of(node):
    """The text of a constant or of an f-string, with `{}` for what is filled in; or None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        left, right = text_of(node.left), text_of(node.right)
        if isinstance(node.op, ast.Mod):
            return left
        return None if left is None and right is None else (left or "{}") + (right or "{}")
    return None


def texts_below(node):
    """Every constant text in an expression, in order."""
    found = []
    for child in ast.walk(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str) and len(child.value) <= LONGEST_STRING:
            found.append(child.value)
    return found


def key_of(node):
    """The index of a subscript as text: a constant, or the source of a name."""
    index = node.slice
    index = getattr(index, "value", index) if type(index).__name__ == "Index" else index
    text = text_of(index)
    return text if text is not None else "<" + dotted(index) + ">"


class Reader(ast.NodeVisitor):
    def __init__(self, source):
        self.lines = source.splitlines(keepends=True)
        self.conditions, self.functions, self.attempts = [], [], 0
        self.facts = {"imports": [], "calls": [], "assigns": [], "strings": [], "argv": []}
        self.literals = {}

    def add(self, kind, node, **fields):
        self.facts[kind].append({"line": node.lineno, "when": list(self.conditions), **fields})

    def condition(self, node):
        """The source of a condition. `ast.get_source_segment` would split the whole file each time."""
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        if not lines:
            return ""
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"".join(lines)[:300].decode("utf-8", "replace")

    def visit_If(self, node):
        self.visit_argv(node.test)
        self.visit(node.test)
        self.conditions.append(self.condition(node.test))
        for child in node.body + node.orelse:
            self.visit(child)
        self.conditions.pop()

    def visit_IfExp(self, node):
        self.visit(node.test)
        self.conditions.append(self.condition(node.test))
        self.visit(node.body)
        self.visit(node.orelse)
        self.conditions.pop()

    def visit_FunctionDef(self, node):
        self.functions.append(node.name)
        self.generic_visit(node)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Try(self, node):
        self.attempts += 1
        for child in node.body:
            self.visit(child)
        self.attempts -= 1
        for child in node.handlers + node.orelse + node.finalbody:
            self.visit(child)

    def visit_ExceptHandler(self, node):
        self.attempts += 1
        self.generic_visit(node)
        self.attempts -= 1

    def imported(self, node, module, names, level):
        self.add(
            "imports",
            node,
            module=module,
            names=names,
            level=level,
            attempted=self.attempts > 0,
            function=self.functions[-1] if self.functions else None,
            standard=level == 0 and module.split(".")[0] in STANDARD,
        )

    def visit_Import(self, node):
        for alias in node.names:
            self.imported(node, alias.name, [], 0)

    def visit_ImportFrom(self, node):
        self.imported(node, node.module or "", [alias.name for alias in node.names], node.level)

    def visit_Assign(self, node):
        self.assigned(node, node.targets, node.value)

    def visit_AugAssign(self, node):
        self.assigned(node, [node.target], node.value)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.assigned(node, [node.target], node.value)

    def assigned(self, node, targets, value):
        for target in flattened(targets):
            name = dotted(target)
            if isinstance(target, ast.Name):
                self.literals[name] = texts_below(value)
            if name:
                key = key_of(target) if isinstance(target, ast.Subscript) else None
                keys = dictionary_keys(value)
                calls = [dotted(child.func) for child in ast.walk(value) if isinstance(child, ast.Call)]
                fields = {"target": name, "key": key, "keys": keys, "value": dotted(value), "calls": calls}
                self.add("assigns", node, texts=texts_below(value), **fields)
        self.visit_argv(value)
        self.generic_visit(node)

    def visit_Return(self, node):
        if node.value is not None:
            self.visit_argv(node.value)
            self.visit(node.value)

    def visit_Delete(self, node):
        for target in node.targets:
            key = key_of(target) if isinstance(target, ast.Subscript) else None
            self.add("assigns", node, target=dotted(target), key=key, keys=[], value="", calls=[], texts=[])

    def visit_Call(self, node):
        keywords = {word.arg: texts_below(word.value) for word in node.keywords if word.arg}
        true = [word.arg for word in node.keywords if word.arg and getattr(word.value, "value", None) is True]
        keys = {word.arg: dictionary_keys(word.value) for word in node.keywords if word.arg}
        first = dotted(node.args[0]) if node.args else ""
        texts = [text for argument in node.args for text in texts_below(argument)]
        name = dotted(node.func)
        if name:
            self.add("calls", node, name=name, texts=texts, keywords=keywords, true=true, keys=keys, first=first)
        self.generic_visit(node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return  # a docstring says nothing of what is done
        self.visit_argv(node.value)
        self.generic_visit(node)

    def visit_Compare(self, node):
        """What a string is compared with is not what is done with it."""
        for child in [node.left] + node.comparators:
            if text_of(child) is None:
                self.visit(child)

    def visit_Constant(self, node):
        if isinstance(node.value, str) and node.value and len(node.value) <= LONGEST_STRING:
            self.add("strings", node, text=node.value)

    def visit_JoinedStr(self, node):
        text = text_of(node)
        if len(text) <= LONGEST_STRING:
            self.add("strings", node, text=text)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part)

    def visit_argv(self, test):
        """Names of commands that sys.argv is looked through for, where an expression does that."""
        looks = [node for node in ast.walk(test) if isinstance(node, ast.Attribute) and dotted(node) == "sys.argv"]
        if not looks:
            return
        texts = texts_below(test)
        for node in ast.walk(test):
            if isinstance(node, ast.Name):
                texts.extend(self.literals.get(node.id, []))
        self.add("argv", test, texts=texts)


def flattened(targets):
    """The targets of an assignment, with those in tuples and lists."""
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            yield from flattened(target.elts)
        else:
            yield target


def dictionary_keys(node):
    if isinstance(node, ast.Dict):
        return [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    if isinstance(node, ast.Call) and dotted(node.func) == "dict":
        return [word.arg for word in node.keywords if word.arg]
    return []


def read(path):
    try:
        with open(path, "rb") as stream:
            content = stream.read()
        tree = ast.parse(content, path)
        reader = Reader(content)
        reader.visit(tree)
    except SyntaxError as error:
        return {"path": path, "error": "line {}: {}".format(error.lineno or 1, error.msg)}
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return {"path": path, "error": "{}: {}".format(type(error).__name__, error)}
    return {"path": path, "error": None, **reader.facts}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as stream:
        for name in json.load(stream):
            print(json.dumps(read(name)), flush=True)
