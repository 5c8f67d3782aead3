module vellum/histories

go 1.24

require (
	github.com/anishathalye/porcupine v1.3.1
	vellum v0.0.0
)

replace vellum => ../
