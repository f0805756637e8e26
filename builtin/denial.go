package builtin

import (
	"errors"

	"capgate/capability"
)

// allow asks whether something may be touched now. The error is always a
// [*capability.Denied]: what cannot be decided is denied.
func (o Options) allow(need *capability.Requirement) error {
	undecided := &capability.Denied{Decision: capability.Denial(capability.NotAvailable, need)}
	if o.Decide == nil {
		return undecided
	}
	err := o.Decide(need)
	if err == nil {
		return nil
	}
	if denied := (*capability.Denied)(nil); errors.As(err, &denied) && denied != nil {
		return denied
	}
	return undecided
}
