package proxy

// What tests look at of the URIs of skills.
var (
	LooseURI   = looseURI
	PlainURI   = plainURI
	IsSkillURI = isSkillURI
)
