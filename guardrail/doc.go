// Package guardrail records what a gateway decided: guardrail events, one line
// of JSON each, in files that show when somebody changed them.
//
//	log, err := guardrail.Open(guardrail.Options{Dir: "/var/lib/capgate/events"})
//	ref, err := log.Record(&guardrail.Event{
//		Kind: guardrail.Decision, Call: "c-17", Agent: "scout", Tool: "web__fetch",
//		Decision: "allow", Needs: []guardrail.Need{{Verb: "net.get", Object: "api.github.com:443"}},
//	})
//	if err != nil {
//		return err // not recorded, so not forwarded
//	}
//
// A [Log] is a [Recorder]; whatever emits events is given one. When Record
// returns, the line of an event has left the process, except that an outcome
// waits a moment for the next line: a call costs one write. Lines of goroutines
// that record at the same time are written together.
//
// When writing does not work, Record returns an error, [Log.Err] says why, and
// a new file is tried, at most once a second. The first event in it says how
// many were lost.
//
// # Files
//
// Each process writes files of its own, so that any number of them share a
// folder without a lock between them. The hash of a line covers all its bytes,
// and the next line holds it. Every few lines, when some time has passed, and as
// the first and the last of a file, stands a line that is signed with the key of
// the install; it vouches for all lines above it. A new file says which others
// it found and where they ended, and a file that carries on the chain of
// another one says where that ended.
//
// [Verify] checks all this and says what it cannot know. [Checkpoints] are what
// to keep elsewhere so that it can. [Read] and [Tail] show the events of all
// files as one.
//
// # Limitations
//
// The key lies on the same machine: who runs as the user of the gateway can
// write a whole log anew. Lines behind the last signed one, at most those of a
// few seconds, can be cut or replaced by anyone who can write to the file, and
// so can a newest file that no other names be removed whole. Only checkpoints
// that were kept elsewhere show either. Times are those of the machine's clock.
//
// A process that is killed loses the outcomes of its last tenth of a second; a
// machine that stops loses what the disk had not been given, see [Sync].
//
// What an event may hold is the caller's choice: only [Options.Scrub] takes
// secrets out, and only of objects, links, texts, errors and names of arguments, and,
// where an event has a code or is a [Refusal] or a [Notice], of its tool, method and
// argument. Text that is too long is cut, what is no UTF-8 is replaced, so two targets
// that differ only in bytes that are no text look alike. A hashed object hides a target
// from who has the file, not from who has the key. Grants, links, texts and
// names are not hashed; the text of a [Decision], which quotes its targets, is left out
// then, and who records sees to it that no link quotes any.
//
// Nothing is ever removed: who removes old files tells Verify with
// VerifyOptions.Since. Files on a system without flock are taken to be in use
// until they are closed, and modes are checked where there are modes. The key
// and each file get their names by a hard link, which the file system must know.
package guardrail
