"""Settings of nbgrader for everybody on the hub: where the exchange is, who is who.

On a real hub this file lies where Jupyter looks for everybody's settings, such as
/etc/jupyter. What a student changes in a file of their own changes nothing for others.
"""

import os

c = get_config()

# A folder that all servers and the teacher share.
c.Exchange.root = os.environ["CLASSROOM_EXCHANGE"]

# All servers of this hub run as one user of the system, so the hub says who is who. On a
# machine where each student is a user of the system, delete this line: then nbgrader asks
# the system, and nobody can hand in under another's name.
c.CourseDirectory.student_id = os.environ.get("JUPYTERHUB_USER", "*")
