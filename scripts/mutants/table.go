package main

// mutants are the seeded defects: each point of the protocol dropped, and each rule of deciding and of money.
func mutants() []mutant {
	var all []mutant
	for _, group := range [][]mutant{database(), protocol(), rules(), money()} {
		all = append(all, group...)
	}
	return all
}

// pure are the packages whose tests need no service; the simulator is the slowest and comes last.
func pure() []string {
	return []string{"./core/decide", "./core/spend", "./core/tick", "./core/sim"}
}

func in(file, point, name, before, after string) mutant {
	return mutant{Point: point, Name: name, File: file, Old: before, New: after, Packages: pure()}
}

func sql(file, point, name, before, after string) mutant {
	m := in("providers/postgres/"+file, point, name, before, after)
	m.Packages = []string{"./providers/postgres"}
	return m
}
