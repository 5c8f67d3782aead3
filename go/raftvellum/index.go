package raftvellum

import (
	"slices"
	"sort"

	"vellum"
)

// A block has as many entries as this, or fewer where indexes are missing behind it.
const blockEntries = 8192

// As many blocks that are stored in the log may be in memory: 16 MiB of positions.
const residentBlocksMax = 256

// index says where each entry is: 8 bytes in memory for an entry of a block that is in memory. The
// positions of the others are in records of the log, and are read when they are asked for.
//
//	entry      1 … 8192   8193 … 16384   16385 … 20000
//	block      0          1              2
//	in memory  no         yes            yes, as the newest
//	stored     yes        yes            up to 18000
//
// Indexes grow from block to block, and so do the positions of the entries.
type index struct {
	blocks []*block
	// Blocks that were read from the log, in the order in which that was done.
	loaded []*block
}

// A block is the positions of entries with consecutive indexes.
type block struct {
	// The index of the first one.
	first uint64
	// How many there are.
	count int
	// Where each one is; nil where that is not in memory.
	positions []vellum.LSN
	// The record that has the positions, or 0.
	stored vellum.LSN
	// How many positions of the record come before that of `first`: of entries that are deleted.
	skip int
	// As many entries from `first` on are in the record.
	storedCount int
}

func (b *block) end() uint64 {
	return b.first + uint64(b.count)
}

// find returns the number of the first block that has an entry with the index `at` or behind it.
func (x *index) find(at uint64) int {
	return sort.Search(len(x.blocks), func(i int) bool { return x.blocks[i].end() > at })
}

// block returns the block that has the entry, or nil.
func (x *index) block(at uint64) *block {
	i := x.find(at)
	if i == len(x.blocks) || x.blocks[i].first > at {
		return nil
	}
	return x.blocks[i]
}

func (x *index) first() (uint64, bool) {
	if len(x.blocks) == 0 {
		return 0, false
	}
	return x.blocks[0].first, true
}

func (x *index) last() (uint64, bool) {
	if len(x.blocks) == 0 {
		return 0, false
	}
	return x.blocks[len(x.blocks)-1].end() - 1, true
}

// before returns the newest index that is less than `end`.
func (x *index) before(end uint64) (uint64, bool) {
	i := x.find(end)
	if i < len(x.blocks) && x.blocks[i].first < end {
		return end - 1, true
	}
	if i == 0 {
		return 0, false
	}
	return x.blocks[i-1].end() - 1, true
}

// push adds an entry behind all others.
func (x *index) push(at uint64, position vellum.LSN) {
	if len(x.blocks) > 0 {
		newest := x.blocks[len(x.blocks)-1]
		if newest.positions != nil && newest.end() == at && newest.count < blockEntries {
			newest.positions = append(newest.positions, position)
			newest.count++
			return
		}
	}
	x.blocks = append(x.blocks, &block{first: at, count: 1, positions: []vellum.LSN{position}})
}

// remove takes the entries from `first` to `last` out.
func (x *index) remove(first, last uint64) {
	from := x.find(first)
	to := from + sort.Search(len(x.blocks)-from, func(i int) bool {
		return x.blocks[from+i].first > last
	})
	if from == to {
		return
	}
	var rest []*block
	if left := x.blocks[from]; left.first < first {
		rest = append(rest, left.head(int(first-left.first)))
	}
	if right := x.blocks[to-1]; right.end()-1 > last {
		rest = append(rest, right.tail(int(last+1-right.first)))
	}
	for _, gone := range x.blocks[from:to] {
		gone.positions = nil // x.loaded may still have it
	}
	if from == 0 && len(rest) == 0 {
		clear(x.blocks[:to])
		x.blocks = x.blocks[to:]
		return
	}
	x.blocks = slices.Replace(x.blocks, from, to, rest...)
}

// head is the first entries of a block.
func (b *block) head(count int) *block {
	head := *b
	head.count = count
	head.storedCount = min(b.storedCount, count)
	if b.positions != nil {
		head.positions = b.positions[:count:count]
	}
	return &head
}

// tail is the entries of a block behind the first ones.
func (b *block) tail(without int) *block {
	tail := *b
	tail.first += uint64(without)
	tail.count -= without
	tail.skip += without
	tail.storedCount = max(0, b.storedCount-without)
	if b.positions != nil {
		tail.positions = b.positions[without:]
	}
	return &tail
}

// setPositions has the positions of a block in memory that were read from its record, and drops
// those of the block that was read first, where there are too many.
func (x *index) setPositions(b *block, positions []vellum.LSN) error {
	if len(positions) < b.skip+b.count {
		return errNotARecord
	}
	b.positions = positions[b.skip : b.skip+b.count : b.skip+b.count]
	x.loaded = append(x.loaded, b)
	x.forget()
	return nil
}

// forget drops the positions of blocks that are in the log.
func (x *index) forget() {
	for len(x.loaded) > residentBlocksMax {
		if oldest := x.loaded[0]; oldest.storedCount == oldest.count {
			oldest.positions = nil
		}
		x.loaded = x.loaded[1:]
	}
}

// unstored returns the blocks of which no record has all entries.
func (x *index) unstored() []*block {
	var unstored []*block
	for _, block := range x.blocks {
		if block.storedCount < block.count {
			unstored = append(unstored, block)
		}
	}
	return unstored
}

// setStored notes that the record at `position` has the entries of a block.
func (x *index) setStored(b *block, position vellum.LSN) {
	b.stored, b.skip, b.storedCount = position, 0, b.count
	if b.count == blockEntries {
		x.loaded = append(x.loaded, b)
		x.forget()
	}
}
