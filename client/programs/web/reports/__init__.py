"""Reports: what the page only shows, composed here of parts that it draws one way (`parts`). `table` lists them."""
