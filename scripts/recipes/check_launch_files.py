# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks skypilot.yaml and jobset.yaml of an exported recipe against the schemas of their tools: `check_launch_files.py FOLDER
CRD`, with `pip install skypilot[kubernetes] jsonschema pyyaml` and CRD, the file config/components/crd/bases/
jobset.x-k8s.io_jobsets.yaml of github.com/kubernetes-sigs/jobset. Members that a schema does not name are errors."""
import copy
import pathlib
import sys

import jsonschema
import yaml
from sky.utils import schemas


def strict(schema):
    """The CRD's OpenAPI schema as JSON Schema that names every member."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {k: strict(v) for k, v in schema.items()}
    if schema.get("x-kubernetes-int-or-string"):
        schema = {k: v for k, v in schema.items() if k != "anyOf"} | {"type": ["integer", "string"]}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        schema.setdefault("additionalProperties", False)
    return schema


def check(name, document, schema, wrong):
    jsonschema.validate(document, schema)
    broken = copy.deepcopy(document)
    wrong(broken)
    try:
        jsonschema.validate(broken, schema)
    except jsonschema.ValidationError:
        print(f"{name}: valid")
        return
    raise SystemExit(f"{name}: the schema accepts an unknown member, too")


def main():
    folder, crd = pathlib.Path(sys.argv[1]), yaml.safe_load(pathlib.Path(sys.argv[2]).read_text())
    task = yaml.safe_load((folder / "skypilot.yaml").read_text())
    check("skypilot.yaml", task, schemas.get_task_schema(), lambda d: d.update(num_node=2))
    check("skypilot.yaml, resources", task["resources"], schemas.get_resources_schema(), lambda d: d.update(accelerator="H100:8"))
    jobset = yaml.safe_load((folder / "jobset.yaml").read_text())
    versions = {v["name"]: v["schema"]["openAPIV3Schema"] for v in crd["spec"]["versions"]}
    schema = strict(versions[jobset["apiVersion"].rpartition("/")[2]])
    schema["properties"]["metadata"] = {"type": "object"}
    check("jobset.yaml", jobset, schema, lambda d: d["spec"]["replicatedJobs"][0]["template"]["spec"].update(paralelism=2))


main()
