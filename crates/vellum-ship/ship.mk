# Shipping to object storage: the program and its tests. Included by the Makefile at the root.

##@ Ship

.PHONY: ship test-ship ship-faults test-ship-servers test-ship-kafka

# A workspace of its own, as the peers are.
SHIP = --manifest-path crates/vellum-ship/Cargo.toml --target-dir $(TARGET)/ship --locked
# SHIP_FEATURES=kafka adds topics of Kafka; kafka-ssl those with TLS, which needs Perl and minutes more.
SHIP_FEATURES ?=
ship: tools ##* build vellum-ship, which ships logs to object storage: target/ship/release/vellum-ship; SHIP_FEATURES=kafka
	$(CARGO) build --release $(SHIP) $(if $(SHIP_FEATURES),--features $(SHIP_FEATURES))

# Three hundred dependencies, which `cargo clippy` would check in two minutes, before they are built.
test-ship: tools lint-tools ship-servers ## shipping: its model, stores, reading, kills
	$(CARGO) fmt --manifest-path crates/vellum-ship/Cargo.toml --check
	$(LINTED) $(CARGO) test $(SHIP) --quiet

# Kills of each campaign, every how manieth system call, and moments of each recording.
ship-faults: tools ship-servers ## kill shippers, writers and machines for long: over a thousand kills, each system call, each moment (half an hour)
	VELLUM_SHIP_KILLS=150 VELLUM_SHIP_STOPS=1 VELLUM_SHIP_CUTS=100 $(CARGO) test --release $(SHIP) --test faults --test powercut

test-ship-servers: tools ship-servers-all ## the contract of stores on every server that can be had: versitygw, moto, azurite
	$(CARGO) test $(SHIP) --test stores servers -- --include-ignored

# Not in `test`: librdkafka takes minutes to build, and a broker of Java is slow. VELLUM_SHIP_KILLS=30.
test-ship-kafka: tools kafka-server ## sending to a topic of Kafka: a real broker, kills (Java 17, Maven)
	$(CARGO) clippy $(SHIP) --features kafka --all-targets -- -D warnings
	$(CARGO) test $(SHIP) --features kafka --quiet --lib -- kafka
	$(CARGO) test $(SHIP) --features kafka --quiet --test kafka
