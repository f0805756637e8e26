package doctor

import (
	"fmt"
	"io/fs"

	"capgate/capability"
)

// Place is a file or folder that decides what agents may do, or a folder above one.
type Place struct {
	File         string
	Under        string // the folder of the configuration that it belongs to
	Mode         fs.FileMode
	Owner, Group int
	Listed       bool // whatever is put into the folder counts
	Above        bool // it only leads to one
}

// loose says how others than a user and root could change what is in a place, and what helps,
// "" if they cannot. Many systems give each user a group of the same number and leave to it
// what is made: that group is the user.
func (p Place) loose(user int) (why, hint string) {
	const mend = "chmod go-w leaves it to its owner"
	perm := p.Mode.Perm()
	switch {
	case !p.Above && p.Owner != 0 && p.Owner != user:
		return fmt.Sprintf("the user %d, to whom it belongs, may write to it", p.Owner), "chown gives it to the user of the gateway, or to root"
	case p.Mode&fs.ModeSticky != 0 && !p.Listed: // what lies there is its owner's to replace
	case perm&0o002 != 0:
		why, hint = fmt.Sprintf("others may write to it: its mode is %04o", perm), mend
	case perm&0o020 != 0 && p.Group != p.Owner && p.Group != user && p.Group != 0:
		why, hint = fmt.Sprintf("the group %d may write to it: its mode is %04o", p.Group, perm), mend
	}
	if why != "" && p.Above {
		why += ", which lets them put something else in the place of what lies below"
	}
	return why, hint
}

// Loose finds what others could change of what decides. What is alike in one folder is said once.
func Loose(places []Place, user int) []capability.Finding {
	type kind struct{ under, why string }
	var found []capability.Finding
	first, more := map[kind]int{}, map[int]int{}
	for _, p := range places {
		why, hint := p.loose(user)
		if why == "" {
			continue
		}
		k := kind{p.Under, why}
		if at, said := first[k]; said && p.Under != "" {
			more[at]++
			continue
		}
		first[k] = len(found)
		found = append(found, capability.Finding{
			Code: "others_write", Severity: capability.Warning, Pos: capability.Pos{File: p.File}, Text: why, Hint: hint,
		})
	}
	for at, n := range more {
		found[at].Text += fmt.Sprintf("; %d more beside it are alike", n)
	}
	return found
}

func loosePlaces(s Subject) []capability.Finding { return Loose(s.Places, s.User) }
