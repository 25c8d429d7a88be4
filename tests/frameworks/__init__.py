"""What is known of libraries, held to them on a GPU: as they are, and with the switch that a fix names."""
