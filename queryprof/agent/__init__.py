"""What an agent or an editor asks through the Model Context Protocol."""
