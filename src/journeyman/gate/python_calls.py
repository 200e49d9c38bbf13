"""Functions of Python by what they do, as tables: those that run commands, those that a command
stands for, and those that are noted by the id of a rule.
"""

from journeyman.gate.words import names

SHELL_CALLS = names(
    "os.system os.popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput "
    "asyncio.create_subprocess_shell pexpect.run pexpect.spawn pty.spawn popen2.popen2"
)
LIST_CALLS = names(
    "subprocess.run subprocess.call subprocess.Popen subprocess.check_call "
    "subprocess.check_output asyncio.create_subprocess_exec "
    "asyncio.subprocess.create_subprocess_exec sh.Command"
)
EXEC_CALLS = names("os.execv os.execve os.execvp os.execvpe os.posix_spawn os.posix_spawnp")
SPREAD_CALLS = names("os.execl os.execle os.execlp os.execlpe asyncio.create_subprocess_exec")
SPAWN_CALLS = names("os.spawnl os.spawnlp os.spawnle os.spawnlpe")

# Calls whose first arguments are those of a program.
AS_COMMANDS: dict[str, tuple[str, int]] = {
    "shutil.rmtree": ("rm -rf", 1),
    "os.remove": ("rm", 1),
    "os.unlink": ("rm", 1),
    "os.rmdir": ("rmdir", 1),
    "os.removedirs": ("rm -r", 1),
    "send2trash.send2trash": ("rm -r", 1),
    "shutil.move": ("mv", 2),
    "os.rename": ("mv", 2),
    "os.renames": ("mv", 2),
    "os.replace": ("mv", 2),
    "shutil.copy": ("cp", 2),
    "shutil.copy2": ("cp", 2),
    "shutil.copyfile": ("cp", 2),
    "shutil.copytree": ("cp -r", 2),
    "os.symlink": ("ln -s", 2),
    "os.link": ("ln", 2),
    "os.mkdir": ("mkdir", 1),
    "os.makedirs": ("mkdir -p", 1),
    "os.truncate": ("truncate -s 0", 1),
    "os.chown": ("chown user", 1),
    "shutil.chown": ("chown user", 1),
    "os.kill": ("kill", 1),
    "os.killpg": ("kill -1", 0),
    "signal.pidfd_send_signal": ("kill -1", 0),
    "os.pidfd_open": ("kill -1", 0),
    "shutil.unpack_archive": ("cp", 2),
    "runpy.run_path": ("python", 1),
    "requests.post": ("curl -X POST", 1),
    "requests.put": ("curl -X PUT", 1),
    "requests.patch": ("curl -X PATCH", 1),
    "requests.delete": ("curl -X DELETE", 1),
    "requests.get": ("curl", 1),
    "httpx.post": ("curl -X POST", 1),
    "httpx.put": ("curl -X PUT", 1),
    "httpx.patch": ("curl -X PATCH", 1),
    "httpx.delete": ("curl -X DELETE", 1),
    "urllib.request.urlretrieve": ("wget", 1),
    "smtplib.SMTP": ("sendmail", 0),
    "smtplib.SMTP_SSL": ("sendmail", 0),
    "ftplib.FTP": ("ftp", 1),
    "ftplib.FTP_TLS": ("ftp", 1),
    "pip.main": ("pip install package", 0),
    "pip._internal.main": ("pip install package", 0),
}
PATH_METHODS: dict[str, str] = {
    "unlink": "rm",
    "rmtree": "rm -rf",
    "touch": "touch",
    "mkdir": "mkdir",
    "read_text": "cat",
    "read_bytes": "cat",
}
NOTED: dict[str, str] = {
    "os.setuid": "code.rights",
    "os.setgid": "code.rights",
    "os.setreuid": "code.rights",
    "os.seteuid": "code.rights",
    "marshal.loads": "code.unseen",
    "code.InteractiveInterpreter": "code.unseen",
    "types.FunctionType": "code.hidden",
    "types.CodeType": "code.hidden",
}
NATIVE = frozenset({"ctypes", "cffi", "_ctypes"})
REMOTE = frozenset({"paramiko", "telnetlib", "fabric", "pexpect.pxssh", "asyncssh", "scapy"})
HIDING = names("__subclasses__ __globals__ __builtins__ __code__ __mro__ f_globals __loader__")
SENSITIVE = frozenset(
    {"os", "subprocess", "shutil", "builtins", "__builtins__", "sys", "importlib"}
)
CONNECTS = frozenset({"connect", "connect_ex", "sendto"})
LOCAL = ("localhost", "127.", "::1", "0.0.0.0")  # noqa: S104
PASSED = (
    SHELL_CALLS
    | LIST_CALLS
    | EXEC_CALLS
    | {"shutil.rmtree", "eval", "exec", "os.remove", "os.unlink", "os.removedirs"}
)
