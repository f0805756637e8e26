package agents

import (
	"context"
	"time"
)

// WatchOnlySweeping is Watch where no event is ever announced.
func (r *Registry) WatchOnlySweeping(ctx context.Context, every time.Duration) error {
	w := watcher{Registry: r, sweep: every}
	return w.loop(ctx, nil, nil)
}

// Settle is how long what is being written is waited for.
const Settle = settle
