"""The errors that Toolcrib raises or reports, in one tree of classes.

Each class has a stable `code`, builds its own message from its fields, names the tool where there is one, pickles, and
keeps the standard-library parents a caller would catch. Nothing here imports the rest of the package.
The classes are named `toolcrib.errors.X` wherever a name is shown or kept: in tracebacks, records and pickles.
"""

from toolcrib.errors._adapters import (
    DatabaseError,
    DocumentError,
    EngineError,
    FrontEndError,
    MissingExtraError,
    RemoteToolError,
    ServerError,
    WorkerError,
)
from toolcrib.errors._approvals import ApprovalDenied, ApprovalError, ApprovalRequired, PendingLimitReached, PolicyError
from toolcrib.errors._base import (
    ToolcribError,
    asks_for_approval,
    choice_meant,
    closest,
    nearest,
    require_choice,
    suggestion,
    value_problem,
    word_in_list,
)
from toolcrib.errors._calls import (
    CallStateError,
    ClientAnswerError,
    ClientUnavailable,
    ExitError,
    HookError,
    LimitReached,
    LockHeldError,
    ModelRetry,
    NotCallable,
    RetriesExhausted,
    SpendLimitReached,
    ToolCancelled,
    ToolTimeoutError,
    exception_of,
    message_of,
    raising_newer_forms,
    register_signal,
    signal_of_newer_form,
)
from toolcrib.errors._code import CodeError, SandboxError, SandboxLost, SandboxUnavailable
from toolcrib.errors._code import PausedProgramError as PausedProgramError
from toolcrib.errors._code import ReplayDiverged as ReplayDiverged
from toolcrib.errors._code import SavedProgramError as SavedProgramError
from toolcrib.errors._code import SessionStateError as SessionStateError
from toolcrib.errors._credentials import ConsentError, CredentialError, CredentialKeyError
from toolcrib.errors._finding import (
    DuplicateNameError,
    InsufficientScope,
    NotAvailable,
    TargetError,
    ToolConstraintError,
    UnknownTool,
    UnregisteredAgentError,
    UnregisteredError,
    UnregisteredHookError,
    UnregisteredToolError,
)
from toolcrib.errors._missing_imports import missing_name
from toolcrib.errors._missing_names import explain_missing
from toolcrib.errors._options import OptionKinds, explain_options, refuse_unknown_options
from toolcrib.errors._results import refuse_coroutine, require_result
from toolcrib.errors._schema import (
    FieldProblem,
    FormatError,
    InvalidArguments,
    InvalidOutput,
    InvalidSchema,
    MissingProvided,
    ResultNotSerializable,
    SchemaError,
    SchemaTooLarge,
)
from toolcrib.errors._turns import (
    CommitError,
    CompletionCheckReturnError,
    NewerForm,
    NoResult,
    NotPortableError,
    RoundError,
    SafeExecutionError,
    TurnTimeoutError,
    WrongRunMethodError,
)

__all__ = [
    "ApprovalDenied",
    "ApprovalError",
    "ApprovalRequired",
    "CallStateError",
    "ClientAnswerError",
    "ClientUnavailable",
    "CodeError",
    "CommitError",
    "CompletionCheckReturnError",
    "ConsentError",
    "CredentialError",
    "CredentialKeyError",
    "DatabaseError",
    "DocumentError",
    "DuplicateNameError",
    "EngineError",
    "ExitError",
    "FieldProblem",
    "FormatError",
    "FrontEndError",
    "HookError",
    "InsufficientScope",
    "InvalidArguments",
    "InvalidOutput",
    "InvalidSchema",
    "LimitReached",
    "LockHeldError",
    "MissingExtraError",
    "MissingProvided",
    "ModelRetry",
    "NewerForm",
    "NoResult",
    "NotAvailable",
    "NotCallable",
    "NotPortableError",
    "OptionKinds",
    "PendingLimitReached",
    "PolicyError",
    "RemoteToolError",
    "ResultNotSerializable",
    "RetriesExhausted",
    "RoundError",
    "SafeExecutionError",
    "SandboxError",
    "SandboxLost",
    "SandboxUnavailable",
    "SchemaError",
    "SchemaTooLarge",
    "ServerError",
    "SpendLimitReached",
    "TargetError",
    "ToolCancelled",
    "ToolConstraintError",
    "ToolTimeoutError",
    "ToolcribError",
    "TurnTimeoutError",
    "UnknownTool",
    "UnregisteredAgentError",
    "UnregisteredError",
    "UnregisteredHookError",
    "UnregisteredToolError",
    "WorkerError",
    "WrongRunMethodError",
    "asks_for_approval",
    "choice_meant",
    "closest",
    "exception_of",
    "explain_missing",
    "explain_options",
    "message_of",
    "missing_name",
    "nearest",
    "raising_newer_forms",
    "refuse_coroutine",
    "refuse_unknown_options",
    "register_signal",
    "require_choice",
    "require_result",
    "signal_of_newer_form",
    "suggestion",
    "value_problem",
    "word_in_list",
]

for _class in [item for item in globals().values() if isinstance(item, type)]:
    _class.__module__ = __name__
