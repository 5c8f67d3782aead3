// Package vellumqueue is a durable queue in one directory, for the goroutines of one process.
//
//	queue, err := vellumqueue.Open("outbox", vellumqueue.MaxBytes(1<<30, vellumqueue.Block))
//	if err != nil {
//		return err
//	}
//	defer queue.Close()
//	err = queue.Put(ctx, []byte("a message")) // it survives a power cut
//
//	message, err := queue.Get(ctx)
//	if err != nil {
//		return err
//	}
//	if send(message.Data) == nil {
//		err = message.Ack(ctx) // it never comes again
//	} else {
//		err = message.Nack(time.Second) // it comes again in a second
//	}
//
// Guarantees:
//
//   - Messages come in the order in which they were put. One that was given back, or whose lease has
//     ended, comes again before those that follow. Several consumers work on several messages at
//     once; [InOrder] and [Queue.PutKeyed] keep the order where that matters.
//   - After a crash exactly those messages come again that were not acknowledged. A consumer that
//     dies between its work and [Message.Ack] gets its message again: do work twice that way, or
//     remember what was done.
//   - By default Put and Ack return when a power cut cannot take it back. All goroutines share the
//     writes of the device. With [PutAtOnce] and [AckAtOnce] they return before that: the death of
//     the process takes nothing back, a power cut may.
//   - Memory is bounded by the messages in flight ([MaxInFlight]), not by the stored ones.
//   - Files are removed when all of their messages were acknowledged. One old message keeps all
//     later ones.
package vellumqueue
