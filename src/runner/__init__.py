"""What a running plan needs: the schedule of trials, plan order, judge clients, adapters, progress."""
