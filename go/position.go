package vellum

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import "unsafe"

// Position is a position that can be stored outside of the log: which log it is of, and from which
// epoch. A bare [LSN] means something else in another log, and may mean something else after a power
// cut or a truncation.
type Position struct {
	// Log is the id of the log, which is random and never changes.
	Log [16]byte
	// Epoch is the epoch of the log in which the position was taken.
	Epoch uint64
	// LSN is the position in the log.
	LSN LSN
}

func (p Position) c() C.vellum_position {
	c := C.vellum_position{epoch: C.uint64_t(p.Epoch), lsn: C.uint64_t(p.LSN)}
	for i, b := range p.Log {
		c.log[i] = C.uint8_t(b)
	}
	return c
}

func positionOf(c *C.vellum_position) Position {
	p := Position{Epoch: uint64(c.epoch), LSN: LSN(c.lsn)}
	for i, b := range c.log {
		p.Log[i] = byte(b)
	}
	return p
}

// MarshalText is the position as one line, `id/epoch/lsn`.
func (p Position) MarshalText() ([]byte, error) {
	var text [C.VELLUM_POSITION_TEXT_BYTES]C.char
	c := p.c()
	if err := failure(C.vg_position_to_text(&c, &text[0], C.size_t(len(text)))); err != nil {
		return nil, err
	}
	return []byte(C.GoString(&text[0])), nil
}

// UnmarshalText reads a position from its text. Errors: [ErrInvalidOption] for any other text.
func (p *Position) UnmarshalText(text []byte) error {
	name := C.CString(string(text))
	defer C.free(unsafe.Pointer(name))
	var c C.vellum_position
	if err := failure(C.vg_position_from_text(name, &c)); err != nil {
		return err
	}
	*p = positionOf(&c)
	return nil
}

// String is the text of MarshalText.
func (p Position) String() string {
	text, err := p.MarshalText()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// ID is the id of the log, which is random and never changes.
//
// Errors: [ErrUnsupported] where an earlier version made the log and no process has opened it for
// writing since.
func (l *Log) ID() ([16]byte, error) {
	position, err := l.PositionOf(l.Begin())
	return position.Log, err
}

// PositionOf is a position of this log in a form to be stored outside of it; lsn is one that this
// log returned. Errors: as [Log.ID].
func (l *Log) PositionOf(lsn LSN) (Position, error) {
	if err := l.users.enter(); err != nil {
		return Position{}, err
	}
	defer l.users.leave()
	var c C.vellum_position
	if err := failure(C.vg_position_of(l.c, C.uint64_t(lsn), &c)); err != nil {
		return Position{}, err
	}
	return positionOf(&c), nil
}

// Resolve is the place of a stored position that was taken for a record, which holds what it held.
//
// Errors: [ErrOtherLog] for a position of another log; [ErrRewound] where something else may be
// there; [ErrTrimmed] and [ErrOutOfRange] as for [Log.NewReader].
func (l *Log) Resolve(position Position) (LSN, error) {
	return l.resolve(position, C.VELLUM_POSITION_RECORD)
}

// ResolveNext is as Resolve for a position behind the handled record: [Record.Next], or the end of
// the log.
func (l *Log) ResolveNext(position Position) (LSN, error) {
	return l.resolve(position, C.VELLUM_POSITION_NEXT)
}

func (l *Log) resolve(position Position, meaning C.uint32_t) (LSN, error) {
	if err := l.users.enter(); err != nil {
		return 0, err
	}
	defer l.users.leave()
	c := position.c()
	answer := C.vg_resolve(l.c, &c, meaning)
	return LSN(answer.value), failure(answer)
}
