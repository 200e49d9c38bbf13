"""Installing Journeyman into other programs' agents: what is changed in their files, how it is
recorded, checked and taken out again.
"""
