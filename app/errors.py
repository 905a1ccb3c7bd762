"""Errors that only the edge knows: they extend the tree of `projector.errors`.

ShardwiseError
 |- NotFound            404  no such job, page, note, or name in a path
 |- MalformedBody       400  a body that is not what its content type says
 |- UnsupportedMedia    415  a content type no form of the request uses
 |- RequestTooLarge     413  the request description or the whole body passed a limit
 |- NotReady            503  a part the answer needs is still starting
 |- ServiceBusy         503  as many searches run as the service runs at once
 |- StorageMismatch     500  the database was written by another version
 |- JobInterrupted      500  the job was cut off more often than it is retried
 |- JobTimeLimit        504  the job took longer than the service lets one take
 |- PlanNotDone         409  a message to a plan that has no answer, or failed
 |- DataDirBusy         409  another process owns the data folder; only at start, never over HTTP
 |- ServiceFailed       500  the service a command started or called did not answer
"""

from projector.errors import InvalidDescription, ShardwiseError


class NotFound(ShardwiseError):
    """Nothing has this name; `nearest` holds the closest known ones, where names are alike."""

    code = "not_found"
    http_status = 404

    def __init__(self, message: str, *, hint: str = "", nearest: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.nearest = nearest


class MalformedBody(ShardwiseError):
    """The body is broken on the level of its own format."""

    code = "malformed_body"
    http_status = 400


class UnsupportedMedia(ShardwiseError):
    """The content type or encoding is none that the service reads."""

    code = "unsupported_media"
    http_status = 415


class RequestTooLarge(ShardwiseError):
    """A limit on the request was passed; the message names the limit."""

    code = "request_too_large"
    http_status = 413


class PlanNotDone(ShardwiseError):
    """There is no answer to talk about."""

    code = "plan_not_done"
    http_status = 409


class NotReady(ShardwiseError):
    """Still starting; the same request will work later."""

    code = "not_ready"
    http_status = 503


class ServiceBusy(ShardwiseError):
    """As much of this runs as is run at once; the same request will work later."""

    code = "service_busy"
    http_status = 503


class StorageMismatch(ShardwiseError):
    """The database or a stored result belongs to another version."""

    code = "storage_mismatch"


class JobInterrupted(ShardwiseError):
    """The job was started several times and never came to an end."""

    code = "job_interrupted"


class JobTimeLimit(ShardwiseError):
    """The job passed its limit; what it was doing is discarded."""

    code = "job_time_limit"
    http_status = 504


class DataDirBusy(ShardwiseError):
    """Another process owns the data folder."""

    code = "data_dir_busy"
    http_status = 409


class ServiceFailed(ShardwiseError):
    """A service that a command talks to is not there or stopped."""

    code = "service_failed"


class InvalidSettings(InvalidDescription):
    """A setting has a value that cannot be used."""

    code = "invalid_settings"
