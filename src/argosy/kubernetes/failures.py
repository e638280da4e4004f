"""What can go wrong with a request, as the server says it."""

from __future__ import annotations

from argosy.kubernetes.meta import ServerStatus
from argosy.model.errors import ArgosyError


class KubernetesError(ArgosyError):
    """A request that failed. `status` is what the server said of it."""

    code = "kubernetes"

    def __init__(self, request: str, problem: str, *, status: ServerStatus | None = None) -> None:
        super().__init__(f"{request}: {problem}")
        self.request = request
        self.status = status or ServerStatus()

    @property
    def reason(self) -> str:
        """Kubernetes' word for it, such as `AlreadyExists`."""
        return self.status.reason


class KubernetesUnreachable(KubernetesError):
    """No answer: no connection, a broken one, or none in time."""

    code = "kubernetes-unreachable"

    def __init__(self, request: str, problem: str, *, may_have_happened: bool) -> None:
        super().__init__(request, problem)
        #: Whether the request may have reached the server, which may have carried it out.
        self.may_have_happened = may_have_happened


class KubernetesUntrusted(KubernetesUnreachable):
    """The server's certificate is not one that the connection trusts. Asking again does not help."""

    code = "kubernetes-untrusted"


class RequestInvalid(KubernetesError):
    """The server does not accept the object or the parameters."""

    code = "kubernetes-invalid"


class NotAuthenticated(KubernetesError):
    """The server does not accept the credentials, even new ones."""

    code = "kubernetes-not-authenticated"


class RequestForbidden(KubernetesError):
    """The user lacks a right, or admission refuses the object."""

    code = "kubernetes-forbidden"


class ObjectNotFound(KubernetesError):
    """There is no such object, or no such kind."""

    code = "kubernetes-not-found"


class ObjectConflict(KubernetesError):
    """The object is not as the request assumes: another uid, a newer version, a pod that is bound."""

    code = "kubernetes-conflict"


class ObjectExists(ObjectConflict):
    """There is an object of this name already."""

    code = "kubernetes-exists"


class ResourceVersionGone(KubernetesError):
    """The server does not keep versions that old any more: list again."""

    code = "kubernetes-gone"


class EvictionRefused(KubernetesError):
    """A disruption budget forbids to evict the pod now."""

    code = "kubernetes-eviction-refused"


class RequestThrottled(KubernetesError):
    """The server has too much to do, and still had after all attempts."""

    code = "kubernetes-throttled"


class ServerFailed(KubernetesError):
    """The server could not do it; it may have carried out part of it."""

    code = "kubernetes-server"


class StrangeAnswer(KubernetesError):
    """The answer is not what Kubernetes answers: perhaps the address is not that of an API server."""

    code = "kubernetes-strange-answer"


_BY_CODE: dict[int, type[KubernetesError]] = {
    400: RequestInvalid,
    401: NotAuthenticated,
    403: RequestForbidden,
    404: ObjectNotFound,
    405: RequestInvalid,
    406: RequestInvalid,
    409: ObjectConflict,
    410: ResourceVersionGone,
    413: RequestInvalid,
    415: RequestInvalid,
    422: RequestInvalid,
    429: RequestThrottled,
    503: RequestThrottled,
}


def failure(request: str, code: int, status: ServerStatus | None) -> KubernetesError:
    """The error for an answer with this code."""
    said = status.message if status is not None else ""
    kind = _BY_CODE.get(code) or (ServerFailed if code >= 500 else StrangeAnswer)
    if kind is ObjectConflict and status is not None and status.reason == "AlreadyExists":
        kind = ObjectExists
    if is_budget(status):
        kind = EvictionRefused
    return kind(request, said or f"the server answered {code}", status=status)


def is_budget(status: ServerStatus | None) -> bool:
    """Whether a disruption budget is the cause, which the server answers with the code of throttling."""
    details = status.details if status is not None else None
    return details is not None and any(each.reason == "DisruptionBudget" for each in details.causes)
