#!/usr/bin/env python3
"""Who may include whom, and the smells that say the factoring has slipped.

core <- {codec, rule} <- exec <- top-level headers <- {registry, interop, umbrellas}: a header includes its own room and
the rooms below it; codec and rule never include each other; checkpoint/plan.hpp and fit know of core/error alone,
besides the parts of their own in checkpoint/plan/ and fit/, and fit plans with checkpoint/plan; a .hpp includes no .cuh and no CUDA header.
"""

import re

from house import codecs_of, finish, formats_of, headers, parser, rules_of, without_comments

BELOW_TOP = {"core", "codec", "rule", "exec"}
TOP = BELOW_TOP | {"top", "checkpoint", "fit", "parallel", "state_file"}
MAY_INCLUDE = {
    "core": {"core"},
    "codec": {"core", "codec"},
    "rule": {"core", "rule"},
    "exec": BELOW_TOP,
    "top": TOP,
    "checkpoint": TOP,
    "parallel": TOP,
    "state_file": TOP,
    "registry": TOP | {"registry"},
    "interop": TOP | {"registry", "interop"},
    "umbrella": TOP | {"umbrella"},
}
UMBRELLAS = {"memfit/memfit.hpp", "memfit/memfit.cuh"}
CUDA_HEADER = re.compile(r"^(cuda.*|cub/.*|thrust/.*|cuda/.*|cooperative_groups.*|nccl.*|cublas.*|.*\.cuh)$")
STATEFUL = re.compile(r"\b(virtual|new|delete|malloc|calloc|free|std::(?:vector|map|unordered_map|string|deque|list)"
                      r"|cudaStream_t|CUstream_st)\b(?!\s*;)")


def room(header):
    parts = header.split("/")
    if len(parts) > 2:
        return parts[1]
    if header in UMBRELLAS:
        return "umbrella"
    return "registry" if parts[1].startswith("registry") else "top"


def allowed(header, target):
    if header.startswith("memfit/fit/"):
        return target == "memfit/core/error.hpp" or target.startswith(("memfit/fit/", "memfit/checkpoint/plan"))
    if header.startswith("memfit/checkpoint/plan"):
        return target == "memfit/core/error.hpp" or target.startswith("memfit/checkpoint/plan/")
    return room(target) in MAY_INCLUDE[room(header)]


def include_faults(header, text):
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        target, place = match.group(2), f"{header}:{number}"
        if match.group(1) == '"' and not target.startswith("memfit/"):
            yield f'{place}: write "memfit/<room>/..." in full, not "{target}"'
        elif target.startswith("memfit/") and not allowed(header, target):
            yield f"{place}: {room(header)} may not include {target}"
        if header.endswith(".hpp") and CUDA_HEADER.match(target):
            yield f"{place}: a .hpp includes no CUDA header ({target})"


def smell_faults(texts):
    rules, codecs = rules_of(texts), formats_of(texts) | codecs_of(texts)
    everywhere = [
        (re.compile(r"#\s*pragma\s+omp|_Pragma\s*\(\s*omp"), "parallelism is an argument of the executor"),
        (re.compile(r"#\s*(if|ifdef|elif)\b.*__(AVX|SSE|FMA)"), "vector units are chosen at run time"),
    ]
    for header, text in texts.items():
        smells = list(everywhere)
        where = room(header)
        if where in ("codec", "exec") and rules:
            smells.append((re.compile(rf"\b({'|'.join(sorted(rules))})\b"), "a rule's name has no place here"))
        if where == "rule" and codecs:
            smells.append((re.compile(rf"\b({'|'.join(sorted(codecs))})\b"), "a codec's name has no place here"))
        if where != "codec":
            smells.append((re.compile(r"\b(256|127)(\.0?f?|[uUlLzZ]*)?\b"), "a format's number is at home in codec/"))
        if where in ("codec", "rule"):
            smells.append((STATEFUL, "no allocation, container, stream or virtual function in codec and rule"))
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, reason in smells:
                if match := pattern.search(line):
                    yield f"{header}:{number}: '{match.group().strip()}': {reason}"


def compiler_faults(header, text):
    """A macro may depend on the compiler, the body of a function may not: it would have two bodies in one program."""
    for match in re.finditer(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*__CUDACC__.*\n(?!\s*#\s*(?:define|error))", text, re.M):
        yield f"{header}:{text.count(chr(10), 0, match.start()) + 1}: __CUDACC__ chooses more than a macro"


def main():
    include = parser(__doc__).parse_args().include
    raw = {h: (include / h).read_text() for h in headers(include, ".hpp", ".cuh")}
    faults = [f"{h}: unknown room '{room(h)}'" for h in raw if room(h) not in MAY_INCLUDE.keys() | {"fit"}]
    if not faults:
        code = {h: without_comments(text) for h, text in raw.items()}
        faults = [fault for h, text in raw.items() for fault in include_faults(h, text)]
        faults += [fault for h, text in code.items() for fault in compiler_faults(h, text)]
        faults += smell_faults(code)
    finish(faults, f"{len(raw)} headers include only what their room may")


if __name__ == "__main__":
    main()
