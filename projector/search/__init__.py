"""The parts of the search space: factorisations, menus of choices, and the rows that grow from them."""
