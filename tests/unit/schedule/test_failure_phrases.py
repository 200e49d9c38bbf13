"""Answers that admit a failure, and answers that only speak of one. An answer that was judged
wrongly belongs into one of the lists.
"""

from tests.tables import table

from journeyman.schedule.admissions import find_failure, outside_fences
from journeyman.schedule.failure_phrases import EXCUSES, PHRASES, Excuse, Row

FAILED = (
    "I was not able to finish this job: the API key for the weather service has expired.",
    "Unfortunately I couldn't complete today's check because the VPN was down.",
    "I'm sorry, but I can't carry out this task without access to the terminal.",
    "The report was not created. The script `collect.py` ended with exit status 2 and gave "
    "no data.",
    "collect.sh exited with code 127, so there is nothing to summarise today.",
    "The backup script crashed before it wrote anything:\n\n```\nKeyError: 'host'\n```",
    "Traceback (most recent call last):\n  File \"fetch.py\", line 3, in <module>\nKeyError: 'url'",
    '```\nTraceback (most recent call last):\n  File "a.py", line 1\nValueError: bad\n```',
    "Error: failed to run fetch_prices.py (permission denied).",
    "Could not execute the command: `gh` is not installed on this machine.",
    "I tried three times to reach the database, but every attempt timed out. I could not "
    "produce the daily figures.",
    "## Daily summary\n\nI wasn't able to generate the summary, because the input file is missing.",
    "I do not have access to the internet, so I cannot look up the exchange rates.",
    "I don't have the tools that this task needs: there is no browser here.",
    "This task could not be finished. The repository can't be cloned.",
    "The task has failed: the mail server refused the login.",
    "Task not completed. The login page asked for a second factor.",
    "The scheduled run did not complete, as the disk is full.",
    "The scheduled task could not be carried out because the token was rejected (401).",
    "No report could be produced today, because the feed returned HTTP 500.",
    "I cannot read the inbox, so there is no digest this morning.",
    "The script timed out after 120 seconds and printed nothing.",
    "The provided script returned an error (exit code 3); I have no numbers to report.",
    "Running the script failed with `ModuleNotFoundError: requests`.",
    "Execution of the script failed; the file sales.csv is not where it expects it.",
    "I could not connect to the server, so the health check was not done.",
    "I failed to complete the requested analysis.",
    "Failed to complete the task: no route to host.",
    "I have been unable to run the tests, since pytest is not installed.",
    "I am unable to access the repository; authentication fails. The changelog was not written.",
    "Sorry, I can't do this: the folder /srv/reports does not exist and I may not create it.",
    "I had to stop before the work was done: the API allows no more requests today.",
    "I had to abort the migration check because the connection was refused.",
    "I looked for the export in all three folders. It is not there. Therefore I could not "
    "do the comparison you asked for.",
    "**Job failed**: the endpoint answered 403 to every request.",
    "Status: FAILED\n\nReason: cannot resolve host name api.example.org.",
    "The command could not be run: no such file or directory.",
    "The script didn't run: `python3: can't open file 'report.py'`.",
    "The script could not be found in the scripts folder, so I did nothing.",
    "I can't complete this request, the spreadsheet is protected by a password.",
    "My attempt to fetch the page was blocked by a captcha, so I couldn't write the digest.",
    "Unable to complete the scheduled job: SSL certificate problem.",
    "Unable to retrieve the data from the sensor API; no report today.",
    "The news site cannot be reached from here, so the summary could not be written.",
    "I was unable to generate the weekly statistics due to missing credentials.",
    "The terminal tool is not available to me, so I could not perform the cleanup.",
    "Nothing was done: the script aborted with `set -e` on its second line.",
    "I wasn't able to do what you asked. Every request to the tracker ended in a timeout.",
    "The data collection script failed, so what follows is empty.",
    "I couldn't get the job done: the ssh key is not accepted any more.",
    "I wasn't able to retrieve the invoices. The portal kept returning a 502, and after "
    "five tries I gave up.",
    "Sadly, the weekly digest could not be assembled: the RSS aggregator has been offline "
    "all morning.",
    "Job aborted. The credentials in the vault have expired.",
    "The run failed because `aws` is not configured on this host.",
    "I attempted to run `sync.sh`, but it failed with exit code 23. No files were copied.",
    "I ran the script, but it crashed with a segmentation fault, so I have nothing to report.",
    "There was an error while running the script: connection reset by peer.",
    "An error occurred and the task was not completed.",
    "I regret that I cannot fulfil this request; the calendar tool is missing.",
    "As an AI language model, I can't browse websites, so I can't check the prices.",
    "Unfortunately, the script could not be executed because Python 3.12 is not installed.",
    "Script execution failed: missing environment variable DB_URL.",
    "Error: the script exited with a non-zero status (1).",
    "The prerequisite script did not complete successfully. I stopped there.",
    "I couldn't log in to the admin panel, so today's numbers are missing.",
    "I could not fetch anything: DNS does not resolve.",
    "The task remains incomplete: I ran out of allowed requests.",
    "I was blocked by the firewall and could not finish.",
    "My tools do not let me open PDF files, so I was unable to summarise the contract.",
    "It was not possible to complete the job. The share is not mounted.",
    "I'm afraid I couldn't run the audit: `npm` is missing.",
    "After several attempts I still could not generate the chart report; matplotlib is not there.",
    "The upload failed, so the job is not done.",
    "Command failed: `rsync` returned 12.",
    "The script you gave me (`prices.py`) failed with an ImportError.",
    "I tried to collect the GitHub notifications as asked, but the token was rejected with "
    "401. I could not complete the job.",
    "Hello! I have attempted to run the task. Unfortunately, I was unable to access the "
    "folder `/data`, and no summary could be created.",
    "The requested check failed to run. `curl` is not available in this environment.",
    "I am unable to perform this task with the tools I have (read_file, write_file).",
    "Result: the job failed because config.yml could not be parsed.",
    "I can't run shell commands here, so I can't tell you the disk usage.",
    "The script did not produce any output and ended with exit code 1. I therefore have no "
    "data to work with.",
    "There is no report today. The source database refused the connection.",
    "Today's report is missing: I got a 429 on every call and gave up after ten minutes.",
    "I could not access the web page. Please check the address.",
    "Sorry, something went wrong and I could not finish the task.",
    "I encountered an error while executing the script: FileNotFoundError.",
    "The script `watch.sh` was killed after 120 seconds, so I could not evaluate its output.",
    "Execution failed. The interpreter reports a syntax error on line 4.",
    "Failed: could not authenticate with the mail server.",
    "I gave up after three attempts; the API is down.",
    "I do not have permission to read /var/log/auth.log, so the audit was not done.",
    "The job didn't succeed. Details: the remote end hung up.",
    "I wasn't able to run the backup because pg_dump is missing.",
    "I cannot complete the translation because the source document is empty.",
    "Regrettably, the task could not be executed since no network is available.",
    "The command `make report` failed with exit code 2:\n\n```\nmake: *** No rule to make "
    "target\n```",
    "Summary\n\nThe script failed. No data was collected, and I did not write the file.",
    "Unable to run the job. Missing dependency: jq.",
    "I was unable to complete the daily backup check because the NAS does not respond to ping.",
    "Unfortunately, I could not complete the task. The API returned 401 Unauthorized for "
    "all requests.",
    "I couldn't access the Jira board. The token seems to have been revoked, so there is "
    "no sprint report.",
    "The script failed to run: `bash: ./collect: Permission denied`.",
    "I'm unable to fetch the web page as I have no internet access in this environment.",
    "The task could not be completed because the required file `sales.csv` was not found.",
    "I apologize, but I cannot execute this task as the necessary tool is not available.",
    "Error executing script: exit code 1",
    "I tried to read the log file, but it does not exist. I can't create the summary without it.",
    "I was not able to retrieve today's metrics. Grafana returned a 503 error.",
    "Unable to connect to the database. The report has not been generated.",
    "The job has not been completed. I reached the site, but it wants a login.",
    "I don't have the ability to send requests to external servers, so this check was not "
    "performed.",
    "Apologies, I could not generate the weekly report since the data source is offline.",
    "The weekly report could not be generated: the data source is offline.",
    "Task incomplete: the repository is locked.",
    "I cannot proceed. The working folder is empty.",
)

MISSED = (
    "Backup NOT done. The target disk is not mounted.",
    "Script error: division by zero. No results.",
    "It looks like the script crashed before producing output, so I can't give you the numbers.",
    "After 3 retries the command still failed with exit code 28 (timeout). I stopped.",
)

FINE = (
    "3 of 210 tests failed last night: test_login, test_export, test_merge.",
    "The deploy of Tuesday failed; since then everything is green.",
    "No script failed during the night.",
    "214 passed, 0 failed.",
    "Error budget: fine. 99.97 % over 30 days.",
    "Two customers were unable to complete the checkout yesterday; both used Safari 15.",
    "The nightly ETL job failed at 02:14 with exit code 1. It has been restarted by the watchdog.",
    "All backups are complete. None of the scripts failed.",
    "The script ran without errors and found 3 new releases.",
    "The script did not fail this time; the workaround holds.",
    "The log says:\n\n```\nERROR: failed to execute the script\n```\n\nThat was at 03:12, "
    "before the fix was deployed.",
    "> I was unable to complete the task\n\nThat is what the support bot answered to 14 "
    "users this week.",
    'The most frequent message in the log is "Failed to run the job" (14 times).',
    "I could not find any new papers on the subject this week.",
    "I found no open incidents.",
    "Nothing unusual: CPU 12 %, memory 41 %, no failed logins.",
    "5 failed login attempts from 10.0.0.7, all blocked.",
    "I was unable to reach one of the twelve feeds (example.org); the other eleven are "
    "summarised below.\n\n- A\n- B",
    "At first I could not run the script because of a missing module; after installing it, "
    "it ran well. Result: 42 rows.",
    "The first attempt timed out, the second one worked. 18 new orders.",
    "If the script fails again, raise its time limit to five minutes.",
    "Summary of the incident: the payment job could not be completed on Monday because of "
    "a lock. It was rerun on Tuesday.",
    'Issue #421, "Script failed with exit code 1", was closed by Anna.',
    "New issues today: 1. Unable to complete the setup on Windows. 2. Crash when the file "
    "is empty.",
    "The team was unable to finish the sprint goal; 3 stories move to the next sprint.",
    "Server web-2 cannot be reached since 04:10. web-1 and web-3 are fine.",
    "ALERT: the website is down. https://example.org answers 503 since 06:55.",
    "Disk check: /dev/sda1 92 % full. Please clean up soon.",
    "Build 1183 failed in the step lint: unused import in a.py. Author: Kim.",
    "CI report: main is red. The job `test-windows` failed with exit code 137 (out of memory).",
    "Weekly report: failures went down from 14 to 3.",
    "The cron job on db-1 did not run last night. I looked at its log: the host was rebooting.",
    "Your certificate for example.org expires in 6 days.",
    "I completed the task. One remark: the file was larger than usual.",
    "The task was completed; nothing failed.",
    "Today's quote: I have not failed. I've just found 10,000 ways that won't work.",
    "The experiment failed to show an effect (p = 0.4). The paper is worth reading anyway.",
    "Failed payments: 12 (yesterday 9). Total: 340 €.",
    "Failed units: none. Pending updates: 4.",
    "Job failures in the last 24 hours: 2 (nightly-sync, mail-digest). Both recovered on retry.",
    "I cannot recommend the update yet: three regressions are reported.",
    "I could not reproduce the bug with version 2.1, so it seems to be fixed.",
    "I was unable to find a cheaper flight than the one you have. The best is 129 €.",
    "Kim wrote that he couldn't finish the review today.",
    "Anna: I was not able to complete the migration, will go on tomorrow. Ben: release is out.",
    "From the stand-up notes: the data script crashed on Ben's machine; he is looking into it.",
    "Morning digest: 1) Parliament could not complete the vote. 2) Trains run again.",
    "Release notes 3.2: fixed a bug where the task could not be completed when the list was empty.",
    "The rocket launch could not be completed because of wind. The next window opens on Friday.",
    "Stock report: ACME -3 %. The merger has failed, says Reuters.",
    "Translation of the day: 'The script failed' is 'Das Skript schlug fehl'.",
    "All 14 hosts were checked. On host-9 the update script failed with exit code 100; the "
    "other 13 are up to date.",
    "The health check ran. Status: OK. No error found.",
    "Status: degraded. Two of five workers failed to start; queue length 1,204.",
    "Everything works. The previous run failed because of a network problem, this one went well.",
    "The report is ready: reports/2025-03-01.md. I could not open a chart viewer, so I "
    "looked at the numbers only.",
    "Skipped: step 4 (needs a browser, which this runtime does not have). The rest is "
    "done: 5 files renamed.",
    "Here is the summary of 8 mails. In one of them a customer writes: I can't complete my order.",
    "Traceback analysis: 4 new stack traces since yesterday, all in billing.",
    "New in the error log: `Traceback (most recent call last)` 7 times, all KeyError in cart.py.",
    "Sentry digest: the top issue is TimeoutError in fetch_user (312 events).",
    "Monitoring: the API did not respond within 2 s in 0.3 % of the requests.",
    "I ran the script. It printed 17 lines; none of them is a warning.",
    "The command finished with exit code 0.",
    "The check script exits with code 1 when it finds something; today it found two "
    "outdated packages: foo 1.2 and bar 3.4.",
    "The scan could not decide 3 of 900 files; they are listed below.\n\n- a\n- b\n- c",
    "Reminder: water the plants. I can't do that for you!",
    "No access problems today. All mounts can be reached.",
    "You asked whether any job was unable to complete: no, all 23 did.",
    "Two pull requests wait for a review; one could not be merged because of a conflict.",
    "Good news: the backup that failed on Sunday was repeated and is complete.",
    "The vendor says it was unable to complete the delivery; it will try again on Thursday.",
    "I checked 40 links. 2 could not be reached: a.example, b.example.",
    "Log summary: user `deploy` failed to run the command sudo 3 times.",
    "Never in the last 90 days has the script failed.",
    "I fixed the failing test. The script failed because of a missing import; with it, all "
    "12 tests pass.",
    "The script failed for 2 of 300 records, which are listed in rejects.csv.",
    "Root cause of last week's outage: the deploy script exited with code 1 and nobody noticed.",
    "The job failed twice this month (3rd and 9th), both times because of the proxy. "
    "Uptime 99.2 %.",
    "Anything to worry about? No. No job failed, no report is missing.",
    "Support tickets today: 14. Most frequent: cannot log in (6), unable to complete payment (3).",
    "I could not find a failing job. All 40 pipelines are green.",
    "I couldn't be happier to say that all 30 checks passed.",
    "I could not complete the crossword clue of 14 across, but the other clues are solved below.",
    "Here are today's changes. I could not read two of the attachments because they are "
    "encrypted; everything else is covered.",
    "Deployment 88 failed. Owner: Lee. Since: 07:12. Action: roll back.",
    "Error rate 0.02 %, no traceback in the last 24 hours.",
    "The integration job `sync-crm` failed with exit code 2 at 01:00; on-call was informed "
    "by the system.",
    "Unable to connect: 3 sensors (kitchen, attic, garage). All others report 19 to 22 °C.",
    "Failed to start: nginx on web-4. Running: everything else.",
    "Could not resolve host appears 41 times in the proxy log since midnight.",
    "Top news: talks failed. The government could not finish the budget.",
    "Three jobs were late; none failed.",
    "The customer's report could not be generated because he had no orders; I answered his ticket.",
    "The report was not created by Finance this week, as in every first week of the quarter.",
    "I could not get the price below 100 €; the best offer is 104 €, from shop B.",
    "I can't read the handwriting on page 2, but the sum is clear: 1,240 €.",
    "I don't have permission concerns to report: all 12 shares have the right owners.",
    "The task list: 4 done, 2 open. The task 'paint fence' could not be completed because of rain.",
    "The run failed to beat the record by 3 seconds. Your next race is on Sunday.",
    "The program crashed twice on Pixel phones according to the store console; crash rate 0.1 %.",
    "Your script failed in CI on commit 3fa9; the fix is in PR #12.",
    "The command failed on 1 of 20 hosts (db-7: no space left).",
    "Yesterday I was unable to complete the check; today it is complete: all fine.",
    "I cleaned up 40 files. I could not delete 2, which are in use. 3.1 GB are free now.",
    "The work did not finish early, says the builder; new date: Friday.",
    "Job failed to start count: 0. Job succeeded count: 144.",
    "Status: failed over to db-2 at 03:00, replication is healthy again.",
    "I compared both lists. No differences. I did not need to run the script.",
    "I could not reproduce it; I ran the script 50 times and it never failed.",
    "Mails about failed deliveries: 2. Subject of the first: Unable to complete delivery.",
    "Scan finished. 2 hosts could not be reached (nas, printer), 31 are fine.",
    "I have written the summary to notes.md. I could not run a spell check on it.",
    "Bug triage: 5 new. The most severe one: the export script crashes with an empty list.",
    "The review is done. I was unable to verify claim 3 of the paper, all others hold.",
    "# Nightly summary\n\nAll services healthy.\n\n| job | result |\n|---|---|\n| etl | "
    "failed |\n| mail | ok |",
    "Two incidents overnight. In the first, the ingest script failed with exit code 1 "
    "because of a full disk. In the second, a certificate expired. Both are resolved.",
    "The ingest script failed with exit code 1 on node 4 overnight; the on-call engineer "
    "fixed it at 03:10.",
    "Your query of the week: why can't I complete my profile? Answer: the photo is too large.",
    "I reviewed 6 pull requests. I could not run the tests for #88 because it has conflicts.",
    "Weather: 14 °C, rain. I could not find pollen data.",
    "The backup completed. Size 12.4 GB. I could not verify the checksum of the old one "
    "since it has been deleted.",
    "Here is your reading list. I could not access the paywalled article, so I summarised "
    "its abstract instead.",
    "The job market report: unemployment fell to 5.1 %. Analysts could not agree on a forecast.",
    "Failed SSH logins: 312, from 14 addresses. Nothing got in.",
    "Everything failed that could fail, and still we won: match report of FC Example.",
    "Test suite: 1,204 passed, 2 failed, 3 skipped. Failed to complete in time: test_big.",
    "The task force could not complete its work before the summit; a new date is open.",
    "Job openings: 3 new. None requires relocation.",
    "The script found that 3 backups failed; see below.\n\n1. a\n2. b\n3. c",
    "The monitoring script reports that db-2 cannot be reached since 05:00.",
    "The script printed an error for 2 hosts: db-1 and db-4 could not be reached. The "
    "other 28 hosts are up.",
    "The run was fast: 5 km in 24:10. You failed to hydrate, says your watch.",
    "I was unable to complete step 3 (no browser), everything else is done: see report.md.",
    "Skipped steps: I could not run the image generation (this model has no such tool). "
    "Text of the newsletter:\n\nDear readers, spring is here.",
    "Dependabot: 4 alerts. One could not be fixed automatically.",
    "The report was not sent to Bob, because he is on holiday. It is in reports/09.md.",
    "Update: the task of moving the DNS is done. Nothing failed.",
    "Inbox: 3 mails. Bob cannot access the wiki. Ann asks for a date. Newsletter.",
    "The script failed test was renamed to test_script_failure in today's commit.",
    'Commit summary: "Handle the case where the script failed" (Kim), "Bump version" (Lee).',
    "Kubernetes: 2 pods in CrashLoopBackOff: api-7f, worker-2c. The command exited with "
    "code 137 in both.",
    "The command failed on web-3 only; the deploy went through on the seven other machines.",
    "I read all 12 logs. The run of 02:00 failed with a timeout, the run of 03:00 was fine.",
    "Health: OK. I could not load the picture for the title, not important.",
    "Sorry to say: your team lost 0:2.",
    "I can't believe it either: zero errors for 30 days.",
    "I cannot access anything that you have not shared, as it should be: the permissions "
    "test passed.",
    "Traceback (most recent call last) was seen 4 times in app.log, each time in billing.py.",
    "Unable to complete orders: 4 customers. Main reason: card declined.",
    "Good morning! 4 new issues, 2 closed. The oldest open one is #12, 'Export fails on Windows'.",
    "All systems operational. Last failure: 12 days ago.",
    "Disk usage is 71 %. Nothing to do.",
    "2 of 14 cron jobs failed yesterday: rotate-logs (exit code 1) and sync-mail (timeout).",
    "The nightly build failed. Cause: a missing semicolon in main.c, introduced by commit 91ab.",
    "Backup finished in 12 minutes. 3 files could not be read because they were locked.",
    "Here are the top five stories of today:\n\n1. Talks fail\n2. Rates rise",
    "I summarised 14 of the 15 papers; one PDF could not be opened.",
    "The site is down: HTTP 502 since 04:12. I checked it five times.",
    "Certificate check: example.org is valid for 41 days. test.example.org has failed validation.",
    "No new mails. The spam folder has 14.",
    "The stock feed was slow, but the report is complete: see below.\n\n- ACME 12.4",
    "I updated the wiki page. I could not upload the picture, so I linked to it instead.",
    "Five users reported that they could not log in. The cause was an expired session key.",
    "Test run: 312 passed, 4 failed. I could not determine the cause of the fourth.",
    "The script reported 3 warnings and no errors.",
    "The job queue is empty. 0 failed, 0 retrying.",
    "The download job for dataset B failed again (disk quota). Dataset A and C are complete.",
    "I could not detect any change on the page since yesterday.",
    "Unable to sleep? Today's tip: no coffee after 3 pm.",
    "Your flight LH 123 is delayed by 40 minutes.",
    "The migration script failed on staging, so I suggest postponing the release. Details "
    "are below.",
    "The server cannot be reached from two of our five regions.",
    "Pull request #44 cannot be merged: checks failed.",
    "I did not find anything that failed.",
)


def test_an_admitted_failure_is_found() -> None:
    assert [answer for answer in FAILED if find_failure(answer) is None] == []


def test_what_is_known_to_be_missed() -> None:
    """Too weak to tell from a report on something else; found one day, it moves to the others."""
    assert [answer for answer in MISSED if find_failure(answer)] == []


def test_a_report_on_failures_is_none() -> None:
    found = [(row.id, answer) for answer in FINE if (row := find_failure(answer))]
    assert found == []


@table("row", PHRASES, ids=lambda row: row.id)
def test_every_row_finds_its_example(row: Row) -> None:
    assert row.pattern.search(row.example)
    assert find_failure(row.example) is not None
    assert row.reason


@table("excuse", EXCUSES, ids=lambda excuse: excuse.id)
def test_every_excuse_lets_its_example_off(excuse: Excuse) -> None:
    assert excuse.pattern.search(excuse.example)
    assert any(
        row.pattern.search(sentence) for row in PHRASES for sentence in _sentences(excuse.example)
    )
    assert find_failure(excuse.example) is None


def test_an_admission_amid_a_long_report_is_not_one() -> None:
    told = " ".join(f"Shop {number} sold {number} chairs today." for number in range(20))
    admission = "I was unable to complete the task."
    assert find_failure(f"{told} {admission} {told}") is None
    assert find_failure(f"{told} {admission}") is not None
    assert find_failure(f"{admission} {told}") is not None


@table(
    "answer",
    [
        "I couldn’t complete the task.",
        "**I could not complete the task.**",
        "# Report\n\nI could not\ncomplete the task.",
        "I\u00a0was unable to complete the task.",
    ],
    ids=["apostrophe", "bold", "wrapped", "hard_blank"],
)
def test_the_look_of_the_words_does_not_matter(answer: str) -> None:
    assert find_failure(answer) is not None


def test_outside_fences_leaves_fences_out() -> None:
    assert outside_fences("a\n```\nb\n```\nc") == "a\nc"
    assert outside_fences("a\n````\n```\nb\n````\nc") == "a\nc"
    assert outside_fences("a\n~~~\n```\n~~~\nc") == "a\nc"
    assert outside_fences("```text\nb\n```") == "b", "where nothing else is"
    assert outside_fences("a\n```\nb") == "a\n```\nb", "an open fence is none"


@table(
    "answer",
    ["\n" * 200_000 + "x", "```a\n" * 40_000, '"' * 100_000, " *" * 100_000, "I tried " * 40_000],
    ids=["lines", "fences", "quotes", "marks", "words"],
)
def test_a_strange_answer_is_read_all_the_same(answer: str) -> None:
    assert find_failure(answer) is None


def _sentences(text: str) -> list[str]:
    return [f"{sentence}." for sentence in text.rstrip(".").split(". ")]
