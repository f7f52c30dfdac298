"""Sets of boxes or spans: sources miss real elements, and mark false ones of their own."""
