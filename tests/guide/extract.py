#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""extract.py FOLDER FILE.md...: writes each C or C++ block that begins with an #include to FOLDER; prints their paths.

A block is named by its file, with the folder of a file that is deeper in docs/, and its place among the file's
programs. Missing files have no blocks.
"""
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for source in map(pathlib.Path, sys.argv[2:]):
    text = source.read_text() if source.exists() else ""
    programs = re.finditer(r"^```(cpp|c)\n(#include.*?)^```", text, re.M | re.S)
    for number, program in enumerate(programs, 1):
        line = text.count("\n", 0, program.start(2)) + 1
        code = f'#line {line} "{source}"\n{program[2]}'
        names = [source.parent.name] * (source.parent.parent.name == "docs") + [source.stem]
        target = folder / f"{'_'.join(names).lower()}_{number}.{program[1]}"
        if not target.exists() or target.read_text() != code:
            target.write_text(code)
        print(target)
