"""The generated tables of a page of docs/reference: no number, record or signature of the ABI stands in this folder a second time."""

import collections
import ctypes
import pathlib
import re

REFERENCE = pathlib.Path(__file__).parents[2] / "docs" / "reference"
Role = collections.namedtuple("Role", "name rows dtype scalar many required")
NUMBER = r"^\| `RL_(\w+)` \| (-?\d+) \| (.*) \|$"
ROLE = r"^\| `RL_ROLE_(\w+)` \| (\d+) \| (T\+1|T|1) \| (\w+)(, a scalar)? \| (any number|one)(, required)? \|"
RECORD = r"^\*\*`rl_(\w+)`\*\*, \d+ bytes\.(.*?)(?=^\*\*|^<!--)"
FIELD = r"^\| \d+ \| `(\w+) (\w+)(?:\[(\d+)\])?` \|"
FUNCTION = r"^\| `([\w.]+)\((.*)\)(?: → (\w+))?` \| (.*) \|$"


class Page:
    """Numbers by their names without RL_, as attributes too; what their tables say of them; roles, records, exports and imports."""

    def __init__(self, name):
        text = (REFERENCE / name).read_text()
        self.numbers = {name: int(number) for name, number, _ in re.findall(NUMBER, text, re.M)}
        self.about = {name: about for name, _, about in re.findall(NUMBER, text, re.M)}
        self.roles = {int(n): Role(name.lower(), rows, dtype, scalar != "", many != "one", required != "")
                      for name, n, rows, dtype, scalar, many, required in re.findall(ROLE, text, re.M)}
        self.numbers |= {"ROLE_" + role.name.upper(): n for n, role in self.roles.items()}
        self.records = {name: record(name, table) for name, table in re.findall(RECORD, text, re.M | re.S)}
        functions = re.findall(FUNCTION, text.split("## Reference")[1], re.M)
        self.exports = {name: (signature(params, result), "Required." in about) for name, params, result, about in functions if "." not in name}
        self.imports = {name.split(".")[1]: signature(params, result) for name, params, result, _ in functions if "." in name}

    def __getattr__(self, name):
        return self.numbers[name]

    def named(self, prefix):
        """The numbers whose names begin so, by what follows."""
        return {name.removeprefix(prefix): n for name, n in self.numbers.items() if name.startswith(prefix)}


def record(name, table):
    fields = []
    for kind, field, n in re.findall(FIELD, table, re.M):
        one = getattr(ctypes, "c_" + kind.replace("char", "uint8").removesuffix("_t"))
        fields.append((field, one * int(n) if n else one))
    return type(name, (ctypes.LittleEndianStructure,), {"_fields_": fields})


def signature(params, result):
    return " ".join(p.split()[1] for p in params.split(", ") if p) + " -> " + result


def blank(record):
    """Whether the reserved fields of a record are 0."""
    values = (getattr(record, name) for name, _ in record._fields_ if name.startswith("reserved"))
    return not any(any(v) if isinstance(v, ctypes.Array) else v for v in values)


ENV, COMPONENT = Page("env-abi.md"), Page("component-abi.md")
