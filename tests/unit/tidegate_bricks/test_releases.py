"""The committed manifests fit the releases that are asked for."""

import pytest

from tidegate_bricks.releases import DYNAMODB_LOCAL, KAFKA, Release


@pytest.mark.parametrize("release", [KAFKA, DYNAMODB_LOCAL], ids=lambda release: release.name)
def test_given_release_then_manifest_holds_its_modules_and_no_sources(release: Release) -> None:
    names = release.manifest().digests.keys()
    assert {f"{module.name}-{module.revision}.jar" for module in release.modules} <= names
    assert not [name for name in names if name.endswith(("-sources.jar", "-javadoc.jar"))]


def test_given_dynamodb_local_then_native_libraries_come_with_it() -> None:
    names = DYNAMODB_LOCAL.manifest().digests.keys()
    assert {name.rpartition(".")[2] for name in names} >= {"so", "dylib", "jar"}
