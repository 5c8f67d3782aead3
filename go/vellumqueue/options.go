package vellumqueue

import (
	"time"

	"vellum"
)

// Option says how [Open] opens a queue. All of it is about this process, but for the options of the
// log that shape its files.
type Option func(*options)

type options struct {
	lease       time.Duration
	maxInFlight int
	maxBytes    uint64
	whenFull    Full
	inOrder     bool
	putAtOnce   bool
	ackAtOnce   bool
	log         []vellum.Option
}

// Full is what [Queue.Put] does when the queue has as many bytes as it may.
type Full int

// The choices when the queue is full.
const (
	// Fail returns [ErrFull].
	Fail Full = iota
	// Block waits until enough was acknowledged, or the context ends. On a full disk it waits too.
	Block
	// DropOldest removes the oldest messages, also those that a consumer has.
	DropOldest
)

// Lease is for how long a message belongs to its receiver: then it comes again. The default is 30
// seconds; 0 or less is for ever. See [Message.Extend].
func Lease(lease time.Duration) Option { return func(o *options) { o.lease = lease } }

// MaxInFlight is how many messages may be in memory: those that consumers have, and those that wait
// for their turn behind another one of their key. [Queue.Get] waits when there are as many. The
// default is 1000.
func MaxInFlight(messages int) Option { return func(o *options) { o.maxInFlight = messages } }

// MaxBytes is how many bytes of log the queue may take, from its oldest message on, and the choice
// of [Queue.Put] when there are as many. It counts from now on, also for messages that are in the
// queue already. The files take up to two segments more: of a sixteenth of the limit with which the
// queue was made, 1 MiB to 16 MiB. The default, 0, is no limit.
func MaxBytes(bytes uint64, whenFull Full) Option {
	return func(o *options) { o.maxBytes, o.whenFull = bytes, whenFull }
}

// InOrder gives a message out only when the one before was acknowledged.
func InOrder() Option { return func(o *options) { o.inOrder = true } }

// PutAtOnce has [Queue.Put] return when the message survives the death of the process, and not wait
// until it survives a power cut.
func PutAtOnce() Option { return func(o *options) { o.putAtOnce = true } }

// AckAtOnce is the same for [Message.Ack]. After a power cut such a message may come again.
func AckAtOnce() Option { return func(o *options) { o.ackAtOnce = true } }

// Log adds options of the log, such as [vellum.Mode].
func Log(opts ...vellum.Option) Option {
	return func(o *options) { o.log = append(o.log, opts...) }
}

// segmentBytes is a sixteenth of the limit of the queue, so that files can go in time.
func (o *options) segmentBytes() uint64 {
	const smallest, largest = 1 << 20, 16 << 20
	if o.maxBytes == 0 {
		return largest
	}
	return min(max(o.maxBytes/16>>20<<20, smallest), largest)
}
