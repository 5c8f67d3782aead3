// Package histories checks the views of one log by several processes against a model: Porcupine
// searches an order of their calls in which each call had the outcome that the model allows.
package histories

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"vellum"
)

// The calls of a history.
const (
	callAppend  = "append"
	callSync    = "sync"
	callCommit  = "commit"
	callDurable = "durable"
	callRead    = "read"
	// The steps of a sync.
	callSynced = "synced"
)

// call is one call of one goroutine. Times are those of the machine's clock.
type call struct {
	Kind       string
	Start, End int64
	// Of an append, a commit and a read: the position of the record, and its bytes.
	LSN   vellum.LSN
	Value string
	// Of a sync and a look at the durable end.
	Durable vellum.LSN
	// The result of a read.
	Found string
	// Why the call failed.
	Failed string
}

// state is the model's knowledge of a log.
type state struct {
	// The position of the newest record.
	newest vellum.LSN
	// The durable end that a call has reported, at least.
	durable vellum.LSN
}

// model is a log that was in a state before the first call.
func model(first state) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(now, input, _ any) (bool, any) {
			is, next := step(now.(state), input.(call))
			return is, next
		},
		DescribeOperation: func(input, _ any) string { return input.(call).String() },
		DescribeState:     func(now any) string { return fmt.Sprintf("%+v", now) },
	}
}

// step decides whether a call is allowed in a state.
func step(now state, c call) (isAllowed bool, next state) {
	next = now
	switch c.Kind {
	case callAppend:
		// Positions grow in the order of the appends.
		next.newest = c.LSN
		isAllowed = c.LSN > now.newest
	case callSync:
		// Everything is durable that was appended before: once the call has returned. That is a call
		// of its own for the model, because others may append and look meanwhile.
		isAllowed = c.Durable > now.newest
	case callSynced:
		next.durable = max(now.durable, c.Durable)
		isAllowed = true
	case callCommit:
		next.durable = max(now.durable, c.LSN+1)
		isAllowed = c.LSN <= now.newest
	case callDurable:
		// It never falls back behind something that a call has promised.
		next.durable = c.Durable
		isAllowed = c.Durable >= now.durable
	case callRead:
		isAllowed = c.LSN <= now.newest && c.Found == c.Value
	}
	return isAllowed && c.Failed == "", next
}

func (c call) String() string {
	text := fmt.Sprintf("%s: position %d, durable %d", c.Kind, c.LSN, c.Durable)
	if c.Kind == callRead {
		text = fmt.Sprintf("read at %d: %q, and %q was appended", c.LSN, c.Found, c.Value)
	}
	if c.Failed != "" {
		text += ": " + c.Failed
	}
	return text
}

// history is the calls of each client, for Porcupine.
func history(clients [][]call) (all []porcupine.Operation) {
	for client, calls := range clients {
		for _, c := range calls {
			all = append(all, porcupine.Operation{ClientId: client, Input: c, Call: c.Start, Return: c.End})
			if c.Kind == callSync {
				c.Kind = callSynced
				other := client + len(clients)
				all = append(all, porcupine.Operation{ClientId: other, Input: c, Call: c.Start, Return: c.End})
			}
		}
	}
	return all
}

// after is the state behind a history: each of its calls has returned.
func after(first state, clients [][]call) state {
	for _, calls := range clients {
		for _, c := range calls {
			switch c.Kind {
			case callAppend:
				first.newest = max(first.newest, c.LSN)
			case callCommit:
				first.durable = max(first.durable, c.LSN+1)
			default:
				first.durable = max(first.durable, c.Durable)
			}
		}
	}
	return first
}
