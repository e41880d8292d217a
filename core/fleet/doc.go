// Package fleet holds the nouns of Sluice, the ports to the world and the reasons it gives; it imports the standard library only.
package fleet
