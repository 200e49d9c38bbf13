"""Jobs on time: schedules are read, runs come due, run once and are accounted for."""
