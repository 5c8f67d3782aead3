module vellum

go 1.24
