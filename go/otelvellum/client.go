package otelvellum

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"vellum"
	"vellum/internal/lookup"
)

var errClosed = errors.New("the storage is closed")

// client is the storage of one component. Values are in the log; where they are is in memory.
type client struct {
	log    *vellum.Log
	look   *lookup.Lookup
	config *Config
	// Of all clients together.
	reserve *reserve
	logger  *zap.Logger

	// Held shared from when places are looked up until their records are read. It comes before mu.
	reading sync.RWMutex

	// Guards the fields below. A change of the log holds it, so that changes are in the same order in
	// the log and in memory.
	mu     sync.RWMutex
	places map[string]place
	// Bytes of the records of all values.
	live uint64
	// Bytes of records that no longer count, since the last checkpoint.
	garbage uint64
	// The end of the log, and the length of the record, at the last checkpoint.
	checkpointed    vellum.LSN
	checkpointBytes uint64
	batch           *vellum.Batch
	record          []byte
	closed          bool
	// The newest of the notes that no commit was begun for, or 0.
	newestNote vellum.LSN
	// The directory of the log was removed, and a caller got the error.
	isRemoved bool

	// Held while giving space back. It comes before the others.
	tidying sync.Mutex
	due     chan struct{}
	// Has a value where notes are to be committed after a while.
	noted   chan struct{}
	closing sync.Once
	stopped sync.WaitGroup
}

// place is where the record of a value is, and how long that is.
type place struct {
	position vellum.LSN
	bytes    uint32
	// The value itself, where its log was removed.
	value *[]byte
}

var (
	_ storage.Client = (*client)(nil)
	_ storage.Walker = (*client)(nil)
)

func openClient(path string, config *Config, reserve *reserve, logger *zap.Logger) (
	*client, error,
) {
	log, err := vellum.Open(path, vellum.WAL(), vellum.ApplicationTag(Format), vellum.Mode(0o600),
		vellum.SpareSegmentsMax(1))
	if err != nil {
		return nil, err
	}
	c := &client{
		log:     log,
		look:    lookup.New(log),
		config:  config,
		reserve: reserve,
		logger:  logger,
		places:  map[string]place{},
		batch:   log.NewBatch(),
		due:     make(chan struct{}, 1),
		noted:   make(chan struct{}, 1),
	}
	if err := c.recover(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	c.stopped.Add(1)
	go c.maintain()
	return c, nil
}

// Close closes the storage. Acknowledged changes stay.
func (c *client) Close(context.Context) (err error) {
	c.closing.Do(func() {
		c.mu.Lock()
		c.closed = true
		close(c.due)
		c.mu.Unlock()
		c.stopped.Wait()
		err = c.log.Close()
	})
	return err
}

// Get returns the value of a key, or nil where it has none.
func (c *client) Get(ctx context.Context, key string) ([]byte, error) {
	operation := storage.GetOperation(key)
	err := c.Batch(ctx, operation)
	return operation.Value, err
}

// Set gives a key a value.
func (c *client) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

// Delete takes the value of a key away.
func (c *client) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

// Batch does all of the operations in their order, or none: also where the collector is killed.
//
// On a full disk it returns storage.ErrStorageFull, and the storage continues. Contexts are not
// asked: after an answer the stored state is known.
func (c *client) Batch(_ context.Context, operations ...*storage.Operation) error {
	if err := validate(operations); err != nil {
		return err
	}
	last, err := c.do(operations)
	if errors.Is(err, vellum.ErrNoSpace) && c.reclaim() {
		last, err = c.do(operations)
	}
	return c.finish(last, err)
}

// finish waits until what a change has appended is durable, where that is asked for. A position of 0
// is nothing to wait for.
func (c *client) finish(last vellum.LSN, err error) error {
	if err != nil || last == 0 || !c.config.FSync {
		return full(err)
	}
	return full(c.log.Commit(context.Background(), last))
}

func validate(operations []*storage.Operation) error {
	for _, operation := range operations {
		if operation.Type < storage.Get || operation.Type > storage.Delete {
			return fmt.Errorf("%d is no type of an operation", operation.Type)
		}
		if uint64(len(operation.Key))+uint64(len(operation.Value)) > math.MaxUint32-5 {
			return fmt.Errorf("the value of %.100q is longer than 4 GiB", operation.Key)
		}
	}
	return nil
}

// full turns a full disk into the error that components ask for.
func full(err error) error {
	if errors.Is(err, vellum.ErrNoSpace) {
		return fmt.Errorf("%w: %w", storage.ErrStorageFull, err)
	}
	return err
}

// do does operations, and returns the position of the last record that was appended for them, or 0
// where no caller has to wait for it.
func (c *client) do(operations []*storage.Operation) (vellum.LSN, error) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	places, last, err := c.change(operations)
	if err != nil {
		return 0, err
	}
	return last, c.readAll(operations, places)
}

// readAll reads the values that operations ask for. Their places are in the same order.
func (c *client) readAll(operations []*storage.Operation, places []place) error {
	for i, operation := range operations {
		if operation.Type != storage.Get {
			continue
		}
		value, err := c.read(operation.Key, places[i])
		if err != nil {
			return err
		}
		operation.Value = value
	}
	return nil
}

// read returns a value; nil for no place.
func (c *client) read(key string, at place) ([]byte, error) {
	if at.value != nil {
		return append([]byte{}, *at.value...), nil
	}
	if at.position == 0 {
		return nil, nil
	}
	record, err := c.look.Read(at.position)
	if err != nil {
		return nil, err
	}
	is, value, err := decodeSet(record)
	if err == nil && string(is) != key {
		err = errNotARecord
	}
	return value, err
}

// change does the changes of operations, and notes the places of the values that they read.
func (c *client) change(operations []*storage.Operation) ([]place, vellum.LSN, error) {
	if !changes(operations) {
		c.mu.RLock()
		defer c.mu.RUnlock()
	} else {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	if c.closed {
		return nil, 0, errClosed
	}
	return c.changeLocked(operations)
}

// changeLocked appends what operations change, and then does it in memory.
func (c *client) changeLocked(operations []*storage.Operation) ([]place, vellum.LSN, error) {
	var positions []vellum.LSN
	var last vellum.LSN
	isNote := c.isNote(operations)
	if changes(operations) {
		var err error
		positions, err = c.append(operations)
		if errors.Is(err, vellum.ErrRemoved) && drains(operations) {
			return c.applyRemoved(operations), 0, nil
		}
		if err != nil {
			return nil, 0, err
		}
		last = positions[len(positions)-1]
	}
	places := c.apply(operations, positions)
	if last != 0 {
		c.noticeGrowth()
	}
	if isNote {
		c.commitLater(last)
		last = 0
	}
	return places, last, nil
}

// isNote reports whether operations are how a queue notes which item it hands out, or is done with:
// they read or delete a value, and replace another one. After a power cut that takes a note back,
// the item is handed out again, as after a kill between delivery and note. So no caller waits for
// one.
func (c *client) isNote(operations []*storage.Operation) bool {
	var types [storage.Delete + 1]int
	for _, operation := range operations {
		types[operation.Type]++
	}
	return types[storage.Set] > 0 && types[storage.Get]+types[storage.Delete] > 0 &&
		!c.addsKey(operations)
}

// notedWithin is how long a note may be one that a power cut takes back.
const notedWithin = time.Second

// commitLater has a note made durable, and all notes of a while with one commit.
func (c *client) commitLater(note vellum.LSN) {
	if !c.config.FSync {
		return
	}
	isFirst := c.newestNote == 0
	c.newestNote = note
	if isFirst {
		c.noted <- struct{}{}
	}
}

func (c *client) commitNotes() {
	c.mu.Lock()
	newest := c.newestNote
	c.newestNote = 0
	c.mu.Unlock()
	// Where it fails, the next change that is waited for tells. Closing commits too.
	_ = c.log.Commit(context.Background(), newest)
}

func changes(operations []*storage.Operation) bool {
	for _, operation := range operations {
		if operation.Type != storage.Get {
			return true
		}
	}
	return false
}

// apply does in memory what was appended at positions, or, where these are none, was not: then a value
// is in memory. It returns the places of the values that are read.
func (c *client) apply(operations []*storage.Operation, positions []vellum.LSN) []place {
	places := make([]place, len(operations))
	for i, operation := range operations {
		switch operation.Type {
		case storage.Get:
			places[i] = c.places[operation.Key]
			continue
		case storage.Set:
			at := place{bytes: uint32(5 + len(operation.Key) + len(operation.Value))}
			if len(positions) == 0 {
				value := append([]byte{}, operation.Value...)
				at.value = &value
			} else {
				at.position = positions[0]
			}
			c.put(operation.Key, at)
		case storage.Delete:
			c.drop(operation.Key)
			if len(positions) > 0 {
				c.garbage += uint64(recordOverhead + 1 + len(operation.Key))
			}
		}
		if len(positions) > 0 {
			positions = positions[1:]
		}
	}
	return places
}

// drains reports whether operations take items out of a queue: they read or delete values.
func drains(operations []*storage.Operation) bool {
	return slices.ContainsFunc(operations, func(operation *storage.Operation) bool {
		return operation.Type != storage.Set
	})
}

// applyRemoved does operations in memory, where the log was removed: the records in its open files can
// still be read, and a queue that cannot note an item that it hands out would drop the item.
func (c *client) applyRemoved(operations []*storage.Operation) []place {
	if !c.isRemoved {
		c.isRemoved = true
		c.logger.Error("the directory of the log was removed: what can be read is delivered, and noted in memory only")
	}
	return c.apply(operations, nil)
}

func (c *client) put(key string, at place) {
	c.drop(key)
	c.places[key] = at
	c.live += recordOverhead + uint64(at.bytes)
}

func (c *client) drop(key string) {
	if before, exists := c.places[key]; exists {
		delete(c.places, key)
		c.live -= recordOverhead + uint64(before.bytes)
		c.garbage += recordOverhead + uint64(before.bytes)
	}
}

// append appends the records of operations, all or none. On a full disk it gives the reserve to
// those that add no key.
func (c *client) append(operations []*storage.Operation) ([]vellum.LSN, error) {
	grows := c.addsKey(operations)
	if grows {
		if err := c.reserve.fill(); err != nil {
			return nil, err
		}
	}
	positions, err := c.appendBatch(operations)
	if !errors.Is(err, vellum.ErrNoSpace) {
		return positions, err
	}
	if grows || !c.reserve.use() {
		return nil, err
	}
	c.askForCheckpoint()
	return c.appendBatch(operations)
}

func (c *client) addsKey(operations []*storage.Operation) bool {
	for _, operation := range operations {
		_, exists := c.places[operation.Key]
		if operation.Type == storage.Set && !exists {
			return true
		}
	}
	return false
}

// The memory in which longer batches were put together is given back.
const buffersMax = 4 * mebibyte

func (c *client) appendBatch(operations []*storage.Operation) ([]vellum.LSN, error) {
	bytes := 0
	for _, operation := range operations {
		if operation.Type != storage.Get {
			c.record = appendOperation(c.record[:0], operation)
			c.batch.Push(c.record)
			bytes += len(c.record)
		}
	}
	positions, err := c.batch.AppendEach(context.Background())
	if bytes > buffersMax {
		c.record, c.batch = nil, c.log.NewBatch()
	}
	return positions, err
}

// Walk calls a function for every key and value, and does the operations that it has returned
// when it is through. Nothing else changes meanwhile; the function must not use the client.
func (c *client) Walk(ctx context.Context, visit storage.WalkFunc) error {
	return c.finish(c.walk(ctx, visit))
}

func (c *client) walk(ctx context.Context, visit storage.WalkFunc) (vellum.LSN, error) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, errClosed
	}
	operations, err := c.visitAll(ctx, visit)
	if err == nil {
		err = validate(operations)
	}
	if err != nil {
		return 0, err
	}
	places, last, err := c.changeLocked(operations)
	if err != nil {
		return 0, err
	}
	return last, c.readAll(operations, places)
}

// visitAll collects the operations that a function returns for each value.
func (c *client) visitAll(ctx context.Context, visit storage.WalkFunc) (
	[]*storage.Operation, error,
) {
	var operations []*storage.Operation
	for key, at := range c.places {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		value, err := c.read(key, at)
		if err != nil {
			return nil, err
		}
		more, err := visit(key, value)
		isOver := errors.Is(err, storage.SkipAll)
		if err != nil && !isOver {
			return nil, err
		}
		if operations = append(operations, more...); isOver {
			break
		}
	}
	return operations, nil
}
