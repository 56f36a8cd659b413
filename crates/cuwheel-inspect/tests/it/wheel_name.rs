//! File names of wheels.

use cuwheel_inspect::wheel::{Tag, WheelName, normalize_distribution};

#[test]
fn names_come_apart_and_go_together_again() {
    for (text, parts) in [
        ("demo-0.1.0-py3-none-any.whl", ("demo", "0.1.0", None, 1)),
        ("six-1.17.0-py2.py3-none-any.whl", ("six", "1.17.0", None, 2)),
        ("cuwheel-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl", ("cuwheel", "0.1.0", None, 1)),
        ("demo-1.0-1-py3-none-any.whl", ("demo", "1.0", Some("1"), 1)),
        ("demo-1.0-2cu12-py3-none-any.whl", ("demo", "1.0", Some("2cu12"), 1)),
        ("numpy-2.1.0-cp313-cp313t-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", ("numpy", "2.1.0", None, 2)),
        ("torch-2.5.1+cu124-cp312-cp312-linux_x86_64.whl", ("torch", "2.5.1+cu124", None, 1)),
        ("Zope.Interface-7.0-cp312-cp312-win_amd64.whl", ("Zope.Interface", "7.0", None, 1)),
    ] {
        let name: WheelName = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((name.distribution(), name.version(), name.build(), name.tags().len()), parts);
        assert_eq!(name.to_string(), text);
    }
}

#[test]
fn other_names_are_refused_with_the_reason() {
    for (text, reason) in [
        ("demo-0.1.0.tar.gz", "`demo-0.1.0.tar.gz` does not end in .whl"),
        ("demo-0.1.0-py3-none-any.WHL", "does not end in .whl"),
        ("demo-0.1.0-none-any.whl", "has 4 parts where a wheel has 5"),
        ("my-demo-0.1.0-1-py3-none-any.whl", "has 7 parts"),
        ("-0.1.0-py3-none-any.whl", "`` is not the name of a distribution"),
        ("dem o-0.1.0-py3-none-any.whl", "`dem o` is not the name of a distribution"),
        ("_demo-0.1.0-py3-none-any.whl", "`_demo` is not the name of a distribution"),
        ("größe-0.1.0-py3-none-any.whl", "`größe` is not the name of a distribution"),
        ("../demo-0.1.0-py3-none-any.whl", "`../demo` is not the name of a distribution"),
        ("demo-latest-py3-none-any.whl", "`latest` is not a version"),
        ("demo-1.0-rc1-py3-none-any.whl", "the build tag `rc1` is not a digit followed by"),
        ("demo-1.0--py3-none-any.whl", "the build tag `` is not a digit"),
        ("demo-1.0-py3.-none-any.whl", "`py3.` is not a compatibility tag"),
        ("demo-1.0-py3-none-.whl", "`` is not a compatibility tag"),
        ("demo-1.0-py3-none-any/x.whl", "`any/x` is not a compatibility tag"),
    ] {
        let error = text.parse::<WheelName>().expect_err(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn tag_sets_expand_to_every_combination() {
    let name: WheelName = "demo-1.0-py2.py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl".parse().unwrap();
    let tags: Vec<String> = name.tags().iter().map(Tag::to_string).collect();
    assert_eq!(
        tags,
        [
            "py2-none-manylinux_2_17_x86_64",
            "py2-none-manylinux2014_x86_64",
            "py3-none-manylinux_2_17_x86_64",
            "py3-none-manylinux2014_x86_64",
        ]
    );
    assert_eq!("py3-none-any".parse::<Tag>().unwrap().platform(), "any");
    assert!("py2.py3-none-any".parse::<Tag>().is_err(), "a set is not one tag");
    assert!("py3-none".parse::<Tag>().is_err());
}

#[test]
fn equal_wheels_have_equal_normal_names() {
    let normal = |text: &str| text.parse::<WheelName>().unwrap().normalized().to_string();
    for (left, right) in [
        ("My.Demo-1.0RC1-py3-none-any.whl", "my_demo-1.0rc1-py3-none-any.whl"),
        ("demo-1.00-py3.py2-none-any.whl", "demo-1.0-py2.py3-none-any.whl"),
    ] {
        assert_eq!(normal(left), normal(right));
    }
    assert_ne!(normal("demo-1.0-py3-none-any.whl"), normal("demo-1.0-1-py3-none-any.whl"));
}

#[test]
fn project_and_release_are_compared_whatever_their_spelling() {
    let name: WheelName = "nvidia_CUDA.nvcc-13.0-py3-none-any.whl".parse().unwrap();
    assert!(name.is_distribution("nvidia-cuda-nvcc"));
    assert!(!name.is_distribution("nvidia-cudanvcc"));
    assert!(name.is_version("13.0.0"));
    assert!(!name.is_version("13.0.1"));
    assert!(!name.is_version("not a version"));
    assert_eq!(normalize_distribution("A-_.B"), "a-b");
}

#[test]
fn names_are_made_from_parts() {
    let name = WheelName::new("my-demo", "1.0", "cp311", "abi3", "manylinux_2_28_x86_64").unwrap();
    assert_eq!(name.to_string(), "my_demo-1.0-cp311-abi3-manylinux_2_28_x86_64.whl");
    let name = WheelName::new("My.Demo", "1.0-1", "py2.py3", "none", "any").and_then(|name| name.with_build("2"));
    assert_eq!(name.unwrap().to_string(), "my_demo-1.0.post1-2-py2.py3-none-any.whl");
    assert!(WheelName::new("demo", "1.0", "py3", "no ne", "any").is_err());
    assert!(WheelName::new("demo/", "1.0", "py3", "none", "any").is_err());
    assert!(WheelName::new("demo", "1.0", "py3", "none", "any").unwrap().with_build("1-2").is_err());
}

/// Ten kilobytes of a WHEEL file would otherwise stand for gigabytes of tags.
#[test]
fn a_set_of_more_tags_than_a_wheel_has_is_refused() {
    let set = vec!["a"; 33].join(".");
    for text in [format!("{set}-none-any"), format!("py3-{set}-any"), format!("py3-none-{set}")] {
        let error = Tag::parse_set(&text).unwrap_err().to_string();
        assert_eq!(error, "a set of 33 compatibility tags is more than the 32 that are read; give the wheel fewer");
        assert!(format!("pkg-1.0-{text}.whl").parse::<WheelName>().is_err());
    }
    let most = vec!["a"; 32].join(".");
    assert_eq!(Tag::parse_set(&format!("{most}-{most}-{most}")).unwrap().len(), 32 * 32 * 32);
}
