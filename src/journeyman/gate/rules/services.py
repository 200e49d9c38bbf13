"""Rules on containers, clusters and clouds: what changes or destroys there. What only
lists, shows or plans is everyday work.
"""

import re
from itertools import pairwise

from journeyman.gate.command import Command, is_known
from journeyman.gate.places import Places
from journeyman.gate.rule import Rule, both, either, has, no, not_told, programs, told

_DANGEROUS_RUN = (
    *("--privileged", "--pid=host", "--net=host", "--network=host", "--ipc=host", "--cap-add"),
    *("--device", "--userns=host", "--uts=host", "--security-opt", "--cgroupns=host"),
)


def _reaches_out(command: Command, places: Places) -> bool:
    """A container that gets the machine's devices, its network or its folders."""
    if command.has(*_DANGEROUS_RUN):
        return True
    pairs = pairwise(command.arguments)
    if any(
        name in ("--net", "--network", "--pid", "--ipc") and value == "host"
        for name, value in pairs
    ):
        return True
    for text in command.values("-v", "--volume", "--mount"):
        for piece in text.split(",") if "=" in text else [text]:
            name, equals, value = piece.partition("=")
            source = (value if equals and name in ("src", "source") else piece).partition(":")[0]
            if equals and name not in ("src", "source"):
                continue
            path = places.resolve(source, command.cwd)
            if source.startswith(("/", ".", "~")) and (path is None or not places.is_inside(path)):
                return True
    return False


_CLOUD_LOOKS = re.compile(
    r"(?:describe|list|get|head|show|ls|help|view|search|lookup|wait|info|version|batch-get|"
    r"validate|test|check|filter|estimate|explain|status|tail|logs|read|config-helper|decode)"
    r"(?:-.*)?"
)
_CLOUD_CHANGES = re.compile(
    r"(?:delete|remove|rm|rb|mv|cp|sync|terminate|destroy|stop|put|create|update|purge|detach|"
    r"revoke|disable|reset|cancel|deregister|deploy|set|add)(?:-.*)?"
)


def _cloud(command: Command, _: Places) -> bool:
    """Cloud programs name what they do in their last words; anything but looking is a change."""
    said = command.subcommand(
        *("--profile", "--region", "--output", "--query", "--project", "--zone", "-o", "-g"),
        *("--filters", "--filter", "--format", "--endpoint-url", "--resource-group", "--name"),
    )
    if not said or said[0] in ("help", "version", "info", "configure", "completion"):
        return said[:1] == ("configure",) and said[1:2] not in (("list",), ("get",), ())
    if not all(is_known(text) for text in said[:3]):
        return True
    looks = [at for at, text in enumerate(said) if at and _CLOUD_LOOKS.fullmatch(text)]
    return not looks or any(_CLOUD_CHANGES.fullmatch(text) for text in said[: looks[0]])


def _cloud_secret(command: Command, _: Places) -> bool:
    text = " ".join(command.subcommand())
    return bool(
        re.search(
            r"get-secret-value|print-access-token|print-identity-token|get-access-token|"
            r"get-session-token|secrets versions access|keyvault secret|get-login-password|"
            r"get-credentials|export-credentials",
            text,
        )
    ) or command.has("--with-decryption")


def _cluster_secret(command: Command, _: Places) -> bool:
    said = command.subcommand("-n", "--namespace", "-o", "--context")
    shows = command.has("-o", "--output", "--template")
    return (
        shows
        and said[:1] == ("get",)
        and any(re.match(r"secrets?(?:/|$)", part) for text in said[1:] for part in text.split(","))
    )


SERVICES: tuple[Rule, ...] = (
    Rule(
        "container.reaches",
        "ask",
        "The container gets rights over this machine: its devices, its network or its folders.",
        ("docker run --privileged x", "docker run -v /:/host x", "podman run --pid=host x"),
        programs("docker podman nerdctl"),
        both(
            told("run", "create", "container run", "container create", "compose run"), _reaches_out
        ),
    ),
    Rule(
        "container.loses",
        "ask",
        "It removes containers, images or volumes with what is in them.",
        (
            "docker system prune -af",
            "docker rm -f db",
            "docker volume rm data",
            "docker compose down -v",
        ),
        programs("docker podman nerdctl docker-compose"),
        either(
            told(
                *(
                    "system prune",
                    "system reset",
                    "machine rm",
                    "container prune",
                    "image prune",
                    "volume prune",
                    "builder prune",
                ),
                *("network prune", "rm", "rmi", "volume rm", "image rm", "container rm", "kill"),
                *("network rm", "swarm", "stack rm", "stack deploy", "service rm", "secret rm"),
                *("compose rm", "compose kill", "buildx prune", "context rm", "plugin install"),
                *("container kill", "node rm", "service update", "service create", "import", "cp"),
                with_value=("-f", "--file", "-p", "-H", "--context"),
            ),
            both(
                told("compose down", "down", with_value=("-f", "--file", "-p")),
                has("-v", "--volumes", "--rmi"),
            ),
        ),
    ),
    Rule(
        "secret.cluster",
        "ask",
        "It shows secrets of a cluster.",
        ("kubectl get secret db -o yaml",),
        programs("kubectl oc k3s microk8s"),
        _cluster_secret,
    ),
    Rule(
        "cluster.change",
        "ask",
        "It changes a cluster or runs something there.",
        ("kubectl delete pod x", "kubectl apply -f x.yaml", "kubectl exec -it x -- sh"),
        programs("kubectl oc k3s microk8s k9s kubectx kubens eksctl kops kubeadm nomad consul"),
        both(
            not_told(
                *("get", "describe", "logs", "explain", "top", "version", "diff", "api-resources"),
                *("api-versions", "cluster-info", "wait", "config view", "config current-context"),
                *("config get-contexts", "auth can-i", "completion", "kustomize", "events", "help"),
                *("rollout status", "rollout history", "options", "status", "whoami", "projects"),
                with_value=(
                    *("-n", "--namespace", "--context", "--kubeconfig", "-o", "-s", "--server"),
                    *("-l", "--selector", "--cluster", "--user", "--as", "--token", "--output"),
                ),
                flags=("-A", "--all-namespaces", "--no-headers", "-w", "--watch"),
            ),
            no(has("--dry-run")),
        ),
    ),
    Rule(
        "cluster.release",
        "ask",
        "It installs, changes or removes what runs in a cluster.",
        ("helm uninstall app", "helm upgrade app ./chart", "argocd app delete x"),
        programs("helm helmfile argocd flux skaffold kustomize-apply"),
        both(
            not_told(
                *("list", "ls", "status", "template", "lint", "show", "search", "get", "version"),
                *("repo list", "repo add", "repo update", "dependency", "history", "package"),
                *("create", "env", "diff", "app list", "app get", "render", "build", "help", "dep"),
                with_value=("-n", "--namespace", "--kube-context"),
            ),
            no(has("--dry-run")),
        ),
    ),
    Rule(
        "infrastructure.change",
        "ask",
        "It creates, changes or destroys machines and services that cost money or hold data.",
        ("terraform apply -auto-approve", "terraform destroy", "terraform state rm x"),
        programs("terraform tofu terragrunt packer ansible ansible-playbook vagrant"),
        both(
            either(
                lambda command, _: command.program.startswith("ansible"),
                told(
                    *("apply", "destroy", "import", "taint", "untaint", "state rm", "state mv"),
                    *("state push", "force-unlock", "workspace delete", "refresh", "login"),
                    *("apply-all", "destroy-all", "run-all", "build", "box remove", "up", "halt"),
                    with_value=("-chdir",),
                ),
            ),
            no(has("--check", "--syntax-check", "--list-hosts", "--list-tasks", "--version")),
        ),
    ),
    Rule(
        "secret.cloud",
        "ask",
        "It shows credentials or secrets kept in a cloud.",
        ("aws secretsmanager get-secret-value --secret-id x", "gcloud auth print-access-token"),
        programs("aws gcloud az doctl oci ibmcloud"),
        _cloud_secret,
    ),
    Rule(
        "cloud.change",
        "ask",
        "It changes something in a cloud.",
        (
            "aws ec2 terminate-instances --instance-ids i-1",
            "aws s3 rm s3://b --recursive",
            "gcloud compute instances delete x",
            "az group delete -n x",
        ),
        programs("aws gcloud az doctl oci ibmcloud gsutil s3cmd linode-cli hcloud scw aliyun mc"),
        _cloud,
    ),
    Rule(
        "secret.tool",
        "ask",
        "It shows secrets that a keeper of passwords holds.",
        ("pass show mail", "vault kv get secret/x"),
        programs("pass secret-tool vault op bw lpass keyctl security chamber sops gopass keyring"),
        no(told("help", "version", "status")),
    ),
    Rule(
        "secret.keys",
        "ask",
        "It shows, changes or deletes secret keys.",
        ("gpg --export-secret-keys", "gpg --delete-secret-keys x"),
        programs("gpg gpg2"),
        has(
            "--export-secret-keys",
            "--export-secret-subkeys",
            "--delete-secret-keys",
            "--delete-keys",
            "--delete-secret-and-public-key",
            "--edit-key",
            "--import",
        ),
    ),
)
