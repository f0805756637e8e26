// Package leash has contexts for what is made with every call: making and ending
// one costs a fraction of what it does in package context, whose children are kept
// in maps.
//
//	ctx := leash.New(parent).Within(patience)
//	defer ctx.Cut(nil)
//
// A [Leash] is a [context.Context] and may be handed to whatever takes one. It ends
// with its parent, when its time is over, or when it is cut, and whoever makes one
// cuts it, as a cancel function is called.
//
// # Limitations
//
// [Leash.Err] is what it was cut for, and so need not be [context.Canceled]. What
// a [Hook] has run runs where the leash is cut, and so must not wait.
package leash
