package provider

import (
	"strings"

	"capgate/wire"
)

// metadata judges what is said of a request, and not to the model. Another gateway may be told
// there to send what it logs of the request elsewhere, or for somebody else's account. LiteLLM
// keeps what it tells itself there too, as the files of skills that it runs, under names with a
// line in front.
func (r *request) metadata(v wire.Value) bool {
	if r.policy.Relayed {
		for key, member := range v.Members() {
			name, _ := key.Str()
			if told := strings.HasPrefix(name, "_") || isListed(fold(name), logsElsewhere); told && member.Kind() != wire.Null {
				r.forbid(`"` + clip(name) + `" would tell another gateway where to send a request, or what to run`)
			}
		}
	}
	return r.opaque(v)
}

// logsElsewhere is what LiteLLM takes from metadata for whoever logs its requests.
const logsElsewhere = "langfusepublickey langfusesecret langfusesecretkey langfusehost langsmithapikey langsmithbaseurl " +
	"langsmithtenantid humanloopapikey arizeapikey arizespacekey arizespaceid posthogapikey posthoghost braintrustapikey " +
	"braintrusthost slackwebhookurl lunarypublickey ddapikey ddsite ddagenthost ddagentport gcsbucketname gcspathserviceaccount"

// placeless is the rule of the name of a model, in which another gateway may look for the
// place of the model.
func (r *request) placeless(v wire.Value) bool {
	if name, _ := v.Str(); strings.Contains(name, "://") {
		r.forbid("the name of a model is no address")
	}
	return true
}
