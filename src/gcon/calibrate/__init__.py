"""Budget, sizes, loss and edge influence -> a noise plan. Cannot import graphs."""
