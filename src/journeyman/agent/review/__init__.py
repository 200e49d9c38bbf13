"""The background pass after a turn that writes memory and skills."""
