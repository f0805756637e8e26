package capability

// Code names the reason of a denial. The empty code stands in allowing
// decisions only.
type Code string

// The first five are the ones agents and their authors know from Egghead; the
// rest follow the same style. All of them stand here from the start, so that a
// reader of events never meets a code that is documented elsewhere.
const (
	CapabilityAbsent        Code = "capability_absent"         // no grant of the verb
	ScopeViolation          Code = "scope_violation"           // a grant exists, the request is outside it
	SelfModification        Code = "self_modification"         // agent.grant on the granting agent itself
	ExceedsGrantorAuthority Code = "exceeds_grantor_authority" // handing on more than one has
	UnknownTool             Code = "unknown_tool"              // no such tool
	RequiresApproval        Code = "requires_approval"         // allowed once somebody says so
	ApprovalDenied          Code = "approval_denied"           // somebody said no
	NotAvailable            Code = "not_available"             // what enforcement needs is missing
	SandboxUnavailable      Code = "sandbox_unavailable"       // no backend can confine it
	ToolQuarantined         Code = "tool_quarantined"          // its definition changed or looks poisoned
	ToolRejected            Code = "tool_rejected"             // its definition breaks the protocol, or a secret stands in it
	MalformedArguments      Code = "malformed_arguments"       // the arguments cannot be read strictly
	MalformedRequest        Code = "malformed_request"         // the message cannot be read strictly
	HeaderMismatch          Code = "header_mismatch"           // HTTP headers disagree with the body
	InvalidGrant            Code = "invalid_grant"             // a grant that means nothing as written
	InvalidConfig           Code = "invalid_config"            // a record or configuration that cannot be loaded
	NameCollision           Code = "name_collision"            // two tools claim one name
	LimitExceeded           Code = "limit_exceeded"            // a limit was hit
	UpstreamFailed          Code = "upstream_failed"           // the server behind did not answer properly
	Unauthenticated         Code = "unauthenticated"           // no credential, or not a valid one
	Forbidden               Code = "forbidden"                 // refused before anything was read
)

// Codes returns every code, in the order they are documented.
func Codes() []Code {
	return []Code{
		CapabilityAbsent, ScopeViolation, SelfModification, ExceedsGrantorAuthority, UnknownTool,
		RequiresApproval, ApprovalDenied, NotAvailable, SandboxUnavailable, ToolQuarantined, ToolRejected,
		MalformedArguments, MalformedRequest, HeaderMismatch, InvalidGrant, InvalidConfig, NameCollision,
		LimitExceeded, UpstreamFailed, Unauthenticated, Forbidden,
	}
}
