// Package store keeps what outlives a restart: pins, approvals, tokens, memory.
//
// It keeps bytes under a key in a bucket, each with a version. Whoever writes
// says which version he has read, and nothing is written over what somebody else
// has put there meanwhile. Any number of processes may share one folder:
//
//	s, err := store.Open(".capgate/store")
//	data, version, err := s.Get("pins", "github")
//	version, err = s.Put("pins", "github", changed, version)
//	if errors.Is(err, store.ErrChanged) {
//		// read again
//	}
//
// [Store.Update] does that under a lock, so that edits take turns and none is
// done in vain. [Store.Changed] is for who keeps a copy, and asks often.
//
// # On disk
//
// A bucket is a folder and an entry is a file in it, both named by [escape], an
// injective spelling in lower case that every file system keeps as it is. A file
// holds one line, with the version, a checksum over everything and the key, and
// then the data. It is replaced as a whole: written beside, flushed, renamed,
// and the folder flushed, under an exclusive lock of the bucket. So a reader
// needs no lock and sees one entry or another, never half of one, and what a
// crash has left beside is removed by the next writer.
//
// Versions are random. A counter would start again where an entry was deleted
// and put back, and then two entries would have one version; so would sizes and
// times of files, which change slower than files do.
//
// An entry that is damaged, too large, somewhere it was not put, or a file that
// others may read or own is an error. It never is an absent entry: what is kept
// here may be a refusal.
//
// # Limitations
//
// Who may write as the user of the gateway may write here; the checksum finds
// damage, not intent. An old entry put back whole is not noticed. Access control
// lists are not looked at, nor are the folders above the one that is opened.
//
// An error of Put, Delete or Update that is not [ErrChanged] leaves open whether
// the write has come to pass. A bucket stays when it is empty. Buckets are locked
// with flock: on a network file system that does not carry it to the server, two
// machines do not see each other's locks. Where the platform has no flock, Open
// refuses.
//
// The folder given to [Open] belongs to the store: anything in it whose name
// does not begin with a dot is taken for a bucket.
package store
