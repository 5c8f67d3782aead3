module vellum/bench

go 1.24

require vellum v0.0.0

replace vellum => ../
