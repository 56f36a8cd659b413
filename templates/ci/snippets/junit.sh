python - <<'PYTHON' >> "$GITHUB_STEP_SUMMARY"
import glob
import xml.etree.ElementTree as tree

for path in sorted(glob.glob("results/**/*.xml", recursive=True)):
    suites = list(tree.parse(path).getroot().iter("testsuite"))
    counts = [f"{sum(int(suite.get(key) or 0) for suite in suites)} {key}" for key in ("tests", "failures", "errors", "skipped")]
    print(f"- `{path}`: {', '.join(counts)}")
PYTHON
