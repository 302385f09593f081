#!/usr/bin/env python3
"""The tests of the house can fail: each is shown small wrong trees and must name the fault, and a right one must pass."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

from house import run
from include_cost import compiler_version
from sass import nvdisasm

HERE = Path(__file__).parent
NVCC = os.environ.get("MEMFIT_NVCC")
GUARDED = "#pragma once\n"
RIGHT = {
    "memfit/core/error.hpp": GUARDED + "namespace memfit { struct error {}; }\n",
    "memfit/codec/linear.hpp": GUARDED + '#include "memfit/core/error.hpp"\n' + """namespace memfit {
inline constexpr int default_block = 256;
struct linear8 {
  static constexpr int block = default_block;
};
}
""",
    "memfit/rule/momentum.hpp": GUARDED + '#include "memfit/core/error.hpp"\nnamespace memfit { struct momentum { double lr = 0; }; }\n',
    "memfit/exec/host.hpp": GUARDED + '#include "memfit/codec/linear.hpp"\n#include "memfit/rule/momentum.hpp"\n',
    "memfit/optimizer.hpp": GUARDED + '#include "memfit/exec/host.hpp"\n',
    "memfit/memfit.hpp": GUARDED + '#include "memfit/optimizer.hpp"\n',
}


class Tree(unittest.TestCase):
    """Writes a tree into a temporary folder and runs one check on it."""

    def check(self, script, changes, *arguments, flag="--include"):
        with tempfile.TemporaryDirectory() as name:
            for path, text in {**RIGHT, **changes}.items():
                target = Path(name) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
            words = [str(a).replace("TREE", name) for a in arguments]
            return run(sys.executable, "-B", HERE / script, flag, name, *words)

    def passes(self, script, *arguments, changes=None, **options):
        result = self.check(script, changes or {}, *arguments, **options)
        self.assertEqual(result.returncode, 0, result.stdout)

    def fails(self, script, words, changes, *arguments, **options):
        result = self.check(script, changes, *arguments, **options)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, words)


class IncludeEdges(Tree):
    def fails_with(self, words, path, line):
        self.fails("include_edges.py", words, {path: RIGHT.get(path, GUARDED) + line + "\n"})

    def test_right_tree(self):
        self.passes("include_edges.py")

    def test_wrong_edges(self):
        for path, target in [
            ("memfit/core/error.hpp", "memfit/codec/linear.hpp"),
            ("memfit/codec/linear.hpp", "memfit/rule/momentum.hpp"),
            ("memfit/rule/momentum.hpp", "memfit/codec/linear.hpp"),
            ("memfit/exec/host.hpp", "memfit/optimizer.hpp"),
            ("memfit/optimizer.hpp", "memfit/memfit.hpp"),
            ("memfit/optimizer.hpp", "memfit/interop/eigen.hpp"),
            ("memfit/interop/eigen.hpp", "memfit/memfit.hpp"),
            ("memfit/checkpoint/plan.hpp", "memfit/core/tensor.hpp"),
            ("memfit/checkpoint/plan/chain.hpp", "memfit/core/tensor.hpp"),
            ("memfit/checkpoint/plan/chain.hpp", "memfit/checkpoint/run.hpp"),
            ("memfit/fit/plan.hpp", "memfit/optimizer.hpp"),
        ]:
            with self.subTest(path=path, target=target):
                self.fails_with("may not include", path, f'#include "{target}"')

    def test_parts_of_a_plan_include_each_other(self):
        parts = '#include "memfit/checkpoint/plan/chain.hpp"\n#include "memfit/core/error.hpp"\n'
        self.passes("include_edges.py", changes={
            "memfit/checkpoint/plan/chain.hpp": GUARDED,
            "memfit/checkpoint/plan/check.hpp": GUARDED + parts,
            "memfit/checkpoint/plan.hpp": GUARDED + parts,
        })

    def test_cuda_headers_stay_out_of_hpp(self):
        for target in ["memfit/exec/cuda.cuh", "cuda_runtime.h", "cub/cub.cuh", "thrust/device_vector.h", "nccl.h"]:
            with self.subTest(target=target):
                self.fails_with("no CUDA header", "memfit/exec/host.hpp", f"#include <{target}>")

    def test_short_includes_and_unknown_rooms(self):
        self.fails_with("in full", "memfit/exec/host.hpp", '#include "linear.hpp"')
        self.fails_with("unknown room", "memfit/misc/helper.hpp", "")

    def test_smells(self):
        for path, line in [
            ("memfit/exec/host.hpp", "using best = momentum;"),
            ("memfit/codec/linear.hpp", "struct momentum;"),
            ("memfit/rule/momentum.hpp", "struct linear8;"),
            ("memfit/exec/host.hpp", "constexpr int block = 256;"),
            ("memfit/rule/momentum.hpp", "constexpr float top = 127.0f;"),
            ("memfit/exec/host.hpp", "#pragma omp parallel for"),
            ("memfit/exec/host.hpp", "#ifdef __AVX2__\n#endif"),
            ("memfit/exec/host.hpp", "#ifdef __CUDACC__\nint twice;\n#endif"),
            ("memfit/codec/linear.hpp", "struct wide { virtual void go(); };"),
            ("memfit/rule/momentum.hpp", "inline int* make() { return new int; }"),
        ]:
            with self.subTest(line=line):
                self.fails_with(f"{path}:", path, line)

    def test_macros_may_ask_for_the_compiler(self):
        asks = "#ifdef __CUDACC__\n#define MARK __device__\n#endif\n"
        self.passes("include_edges.py", changes={"memfit/exec/host.hpp": GUARDED + asks})

    def test_words_in_comments_are_free(self):
        self.passes("include_edges.py", changes={"memfit/exec/host.hpp": GUARDED + "// unlike momentum, 256 at a time\n"})


class HeadersAlone(Tree):
    HEADER = "memfit/codec/linear.hpp"

    def fails_with(self, words, text):
        self.fails("headers_alone.py", words, {self.HEADER: text})

    def test_right_tree(self):
        self.passes("headers_alone.py")

    def test_missing_include(self):
        self.fails_with("vector", GUARDED + "inline std::vector<int> none() { return {}; }\n")

    def test_missing_guard(self):
        self.fails_with("redefinition", "struct twice {};\n")

    def test_warning(self):
        self.fails_with("conversion", GUARDED + "inline float narrow(double x) { return x; }\n")

    def test_hostile_macro(self):
        self.fails_with("after hostile macros", GUARDED + "inline int one() { int small = 1; return small; }\n")


class IncludeCost(Tree):
    def budget(self, *rows, version=None):
        rows = [f"measured-with {version or compiler_version('g++')}", *rows]
        return {"cost.txt": "".join(f"{row}\n" for row in rows)}

    def test_budget(self):
        rows = [f"100 {header}" for header in RIGHT]
        self.passes("include_cost.py", "--budget", "TREE/cost.txt", changes=self.budget(*rows))
        heavy = {"memfit/core/error.hpp": GUARDED + "#include <string>\n", **self.budget(*rows)}
        self.fails("include_cost.py", "error.hpp: .* budget 100", heavy, "--budget", "TREE/cost.txt")
        heavy.update(self.budget(*rows, version="other 1"))
        self.passes("include_cost.py", "--budget", "TREE/cost.txt", changes=heavy)
        self.fails("include_cost.py", "no budget yet", self.budget(*rows[1:]), "--budget", "TREE/cost.txt")
        self.fails("include_cost.py", "the tree does not", self.budget(*rows, "9 memfit/gone.hpp"), "--budget", "TREE/cost.txt")


class CompileFail(Tree):
    CASE = "// expect: whole numbers\n{}\nint main() {{\n#ifdef MEMFIT_FAIL\n  {}\n#endif\n}}\n"

    def case(self, before, wrong):
        return {"cases/one.cpp": self.CASE.format(before, wrong)}

    def test_cases(self):
        cases = ("--cases", "TREE/cases")
        self.passes("compile_fail.py", *cases, changes=self.case("", 'static_assert(false, "whole numbers only");'))
        self.fails("compile_fail.py", "no error or note says", self.case("", "nonsense();"), *cases)
        self.fails("compile_fail.py", "the misuse compiles", self.case("", ""), *cases)
        self.fails("compile_fail.py", "right use does not compile", self.case("nonsense();", "nonsense();"), *cases)
        deep = {"memfit/deep.hpp": GUARDED + "template <class T>\nint deep(T t) { return t.whole_numbers; }\n"}
        case = self.case('#include "memfit/deep.hpp"', "return deep(1);")
        self.fails("compile_fail.py", "inside the library", {**deep, **case}, *cases)
        self.fails("compile_fail.py", "no line", {"cases/one.cpp": "int main() {}\n"}, *cases)


class OneDefinition(Tree):
    UNIT = '#include <cstdint>\n#include "memfit/shared.hpp"\nstd::uint64_t MEMFIT_UNIT() {{ return static_cast<std::uint64_t>({}); }}\n'

    def unit(self, header, value):
        return {"memfit/shared.hpp": GUARDED + header, "unit.cpp": self.UNIT.format(value)}

    def test_units(self):
        unit = ("--unit", "TREE/unit.cpp", "--nvcc", "")
        self.passes("one_definition.py", *unit, changes=self.unit("inline int seven() { return 7; }\n", "seven()"))
        self.fails("one_definition.py", "multiple definition", self.unit("int seven() { return 7; }\n", "7"), *unit)
        optimized = "#ifdef __OPTIMIZE__\n#define LEVEL 1\n#else\n#define LEVEL 0\n#endif\n"
        self.fails("one_definition.py", "other bits", self.unit(optimized, "LEVEL"), *unit)


class Device(Tree):
    def test_forgotten_names(self):
        def device(*names, table=("linear8", "momentum")):
            def listed(all_names):
                return "".join(f"memfit::{name}\n" for name in all_names)

            return {"device.cu": listed(names), "table.cu": listed(table)}

        source = ("--source", "TREE/device.cu", "--table", "TREE/table.cu")
        self.passes("device.py", *source, changes=device("linear8", "momentum"))
        self.fails("device.py", "lacks linear8", device("momentum"), *source)
        self.fails("device.py", "lacks momentum", device("linear8"), *source)
        self.fails("device.py", "the table lacks linear8", device("linear8", "momentum", table=["momentum"]), *source)


@unittest.skipUnless(NVCC, "no nvcc")
class Sass(Tree):
    KERNEL = """namespace memfit {
struct sgd;
struct fp32;
namespace detail {
template <class> struct plain_column;
template <class, class, class> __global__ void NAME(float4 const* g, float4* p) { BODY }
template __global__ void NAME<sgd, fp32, plain_column<fp32>>(float4 const*, float4*);
}
}
"""
    RIGHT_BODY = "auto const a = p[0], b = p[1]; p[0] = g[0]; p[1] = g[1]; p[2] = a; p[3] = b;"
    EITHER = "__shared__ float4 s[32]; auto* q = (threadIdx.y == 0 ? s : p) + threadIdx.x; "

    def kernel(self, body, name="step_parts"):
        return {"one.cu": self.KERNEL.replace("NAME", name).replace("BODY", body)}

    def setUp(self):
        self.one = ("--nvcc", NVCC, "--source", "TREE/one.cu", "--architecture", "sm_80")

    def test_words_of_ptxas(self):
        self.passes("sass.py", *self.one, changes=self.kernel(self.RIGHT_BODY))
        self.fails("sass.py", "nothing of a step kernel", self.kernel(self.RIGHT_BODY, name="other"), *self.one)
        array = "float all[64]; for (int i = 0; i < 64; ++i) all[i ^ threadIdx.x] = g[i].x; p[0].x = all[threadIdx.y];"
        self.fails("sass.py", "256 bytes stack frame", self.kernel(self.RIGHT_BODY + array), *self.one)

    @unittest.skipUnless(NVCC and nvdisasm(NVCC), "no nvdisasm")
    def test_machine_code(self):
        for words, body in [
            ("uses local memory", "float all[64]; for (int i = 0; i < 64; ++i) all[i ^ threadIdx.x] = g[i].x; p[0].x = all[1];"),
            ("generic addresses: ST.E", self.EITHER + "q->x = 1.0f; p[5] = s[1];"),
            ("generic addresses: LD.E.128", self.EITHER + "s[1] = a; p[5] = *q;"),
        ]:
            with self.subTest(words=words):
                self.fails("sass.py", words, self.kernel(self.RIGHT_BODY + body), *self.one)
        self.fails("sass.py", "has 0 LDG of 128 bits, .* want 4(.|\n)*has 0 STG", self.kernel("p[0].x = g[0].x;"), *self.one)


class Readme(Tree):
    EXAMPLE = "int main() {\n  // example-begin call\n  run();\n  // example-end call\n}\n"

    def tree(self, readme):
        return {"README.md": readme, "examples/one.cpp": self.EXAMPLE, ".ci/run": "bash tests/run.sh\n"}

    def test_blocks(self):
        right = "```cpp\nrun();\n```\n\n```bash\nbash tests/run.sh   # all of them\n```\n"
        self.passes("readme.py", changes=self.tree(right), flag="--root")
        for words, readme in [
            ("no example has", "```cpp\nrun_faster();\n```\n"),
            ("nothing runs", "```bash\nbash tests/fly.sh\n```\n"),
            ("unknown kind", "```c++\nrun();\n```\n"),
        ]:
            with self.subTest(words=words):
                self.fails("readme.py", words, self.tree(readme), flag="--root")


if __name__ == "__main__":
    unittest.main()
