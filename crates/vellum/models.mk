# The protocol's own code under two model checkers. Included by the Makefile at the root.

##@ Models

.PHONY: model model-long orders

MODEL = RUSTFLAGS="--cfg shuttle" $(CARGO) test --profile model -p vellum --lib --target-dir target/model model
WEAK = RUSTFLAGS="--cfg loom" $(CARGO) test --profile model -p vellum --lib --target-dir target/weak weak::
model: ##* the protocol under two model checkers: death at any step, and weak memory
	$(MODEL)
	$(WEAK)

model-long: ## the same with the models that take minutes
	$(MODEL) -- --include-ignored
	$(WEAK) -- --include-ignored

orders: ## weaken each memory order of the protocol by one step, and see which model fails (docs/protocol.md)
	$(PYTHON) crates/vellum/tests/orders/weaken.py
