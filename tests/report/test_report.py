"""The report as text: what it says, that it is well formed, small, and shows user text as text."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from spaces import EXPORTED

import consilience as cs
from consilience.exceptions import FileFormatError, NotFittedError, SourceMismatchError
from consilience.report import report_html
from report_examples import EXAMPLES

SECTIONS = ("verdict", "findings", "sources", "items", "relations", "done")
WITHOUT_END = {"meta", "input", "br", "hr", "img", "link"}

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, in order. Keeps the visible text, the ids and the rows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def plain_model(votes, space=None, **options):
    return cs.LabelModel(cs.Classes(2) if space is None else space, **options).fit(votes)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_label_type_has_a_well_formed_report_of_all_sections(pages, name):
    page = Page(pages(name))
    assert len(page.ids) == len(set(page.ids))
    assert set(SECTIONS) <= set(page.ids)
    assert f"About {name}" in page.text
    assert page.ids.index("verdict") < page.ids.index("findings") < page.ids.index("sources")
    assert "The most contested first" in page.text
    assert not {"nan", "None", "inf", "-inf", "-0"} & set(page.text.split())


def test_every_exported_label_type_is_among_the_examples():
    assert {type(make().space) for make in EXAMPLES.values()} == EXPORTED


def test_pictures_are_drawn_where_they_say_more_than_a_list(pages):
    for name in ("scores", "vectors", "long_vectors", "hyperbolic", "sphere", "records"):
        articles = pages(name).split("<article ")[1:]
        assert all("<svg" in article for article in articles), name
    assert "polyline" in pages("long_vectors").split("<article ")[1]
    assert "ellipse" in pages("matrices").split("<article ")[1]
    assert 'class="arc' in pages("trees").split("<article ")[1]


def test_the_page_loads_nothing_and_runs_one_script(pages):
    page = Page(pages("classes"))
    policy = next(attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'; ")
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not [tag for tag, attributes in page.elements if "src" in attributes or tag == "link"]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    outside = [str(a["href"]) for tag, a in page.elements if tag == "a" and not str(a["href"]).startswith("#")]
    assert len(outside) == 2
    assert all(address.startswith("data:text/csv;base64,") for address in outside)  # the two downloads
    assert "http://" not in pages("classes").replace("http-equiv", "")
    assert "https://" not in pages("classes")


def test_user_text_is_shown_as_text_in_reports_and_notebooks():
    bad = "</script><script>window.hit = 1</script>"
    image = "<img src=x onerror='window.hit = 2'>"
    quotes = '" onload="window.hit = 3" x=\''
    names = ["plain", image, quotes]
    rows = [[names[0], names[1], names[1]], [names[1], names[1], names[2]], [names[2], names[2], names[2]]] * 8
    votes = cs.Votes.from_array(
        np.array(rows, dtype=object), sources=[bad, image, quotes], items=[f"{bad}{i}" for i in range(24)]
    )
    model = cs.LabelModel(cs.Classes(names)).fit(votes)
    shown = {
        "report": report_html(model, votes, [names[0]] * 24, title=bad),
        "votes": votes._repr_html_(),
        "model": model._repr_html_(),
        "sources": model.sources_._repr_html_(),
    }
    for kind, page in shown.items():
        read = Page(page)
        assert "img" not in {tag for tag, _ in read.elements}
        assert [tag for tag, _ in read.elements].count("script") == (kind == "report")
        assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
        for text in (bad, image, quotes):
            assert text in " ".join(read.words)


def test_a_notebook_shows_what_a_model_learned_and_what_votes_look_like():
    votes = cs.Votes.from_matrix([[0, 1, -1]] * 9 + [[1, 1, 1]], sources=["ann", "bob", "item"])
    model = plain_model(votes)
    shown = Page(model._repr_html_()).text
    assert all(word in shown for word in ("LabelModel(Classes(2))", "ann", "error_rate", model.diagnostics_[0].code))
    assert "not fitted" in cs.LabelModel(cs.Classes(2))._repr_html_()
    table = Page(votes._repr_html_())
    assert [tag for tag, _ in table.elements].count("tr") == 6  # a heading and five items
    assert "10 items, 3 sources" in table.text
    wide = cs.Votes.from_matrix(np.zeros((2, 12), dtype=int))
    assert "…" in wide._repr_html_()


def test_many_items_many_sources_and_long_labels_stay_below_a_megabyte():
    rng = np.random.default_rng(0)
    wordy = cs.Classes([f"class number {code} with quite a long name" for code in range(12)])
    many = cs.simulate(wordy, rng.integers(12, size=100_000), rng.uniform(0.5, 3.0, 25), rng)
    assert len(report_html(plain_model(many, wordy), many).encode()) < 1_000_000
    space = cs.DependencyTrees()
    truth = space.random_trees(np.full(40, 50), rng)
    votes = cs.simulate(space, truth, np.full(30, 1.0), rng)
    assert len(report_html(plain_model(votes, space, method="majority"), votes, truth).encode()) < 1_000_000
    names = [f"a worker whose name & number are long, and is {index}" for index in range(320)]
    crowd = cs.simulate(cs.Classes(2), rng.integers(2, size=900), np.full(320, 1.0), rng, coverage=0.1, sources=names)
    page = report_html(plain_model(crowd, method="majority"), crowd, [0] * 900)
    assert len(page.encode()) < 1_000_000
    long = cs.Votes.from_array(np.array([[np.zeros(200), np.arange(200), np.arange(200)[::-1]]] * 3, dtype=int))
    assert len(report_html(plain_model(long, cs.Rankings(200), method="majority"), long).encode()) < 1_000_000
    assert "The 250 sources with the most votes" in Page(page).text


def test_the_most_contested_item_comes_first_and_unanimous_ones_not_at_all():
    votes = cs.Votes.from_matrix(
        [[0, 0, 0], [1, 1, 1]] * 20 + [[0, 1, -1]], sources=["a", "b", "c"], items=[*map(str, range(40)), "odd"]
    )
    articles = report_html(plain_model(votes, method="majority"), votes).split("<article ")[1:]
    assert len(articles) == 1
    assert "odd" in articles[0]


def test_known_labels_are_compared_with_the_model_the_plain_vote_and_each_source():
    # By hand: "good" is always right and "bad" never; both copies of "bad" outvote it where all three are heard.
    votes = cs.Votes.from_matrix([[0, 1, 1], [1, 0, 0]] * 30, sources=["good", "bad", "worse"])
    gold = [0, 1] * 30
    model = cs.LabelModel(cs.Classes(2), method="labelled").fit(votes, gold)
    text = Page(report_html(model, votes, gold)).text
    assert "60 items have a known label" in text
    assert re.search(r"consilience 60 0 100%", text)
    assert re.search(r"majority vote 60 1 0%", text)
    assert re.search(r"good 60 0 100%", text)
    assert re.search(r"worse 60 1 0%", text)
    assert "100.0% of the labels (60) would be different" in re.sub(r" +", " ", text)


@pytest.mark.parametrize(
    "rows",
    [[[0]] * 4, [[0, 1]], [[0, 1, 1]], [[-1, -1, -1], [0, 1, 1]], [[0, -1, 1]] * 9, [[0, 0, 0]] * 9],
    ids=["one source", "one item", "one item, three sources", "no vote on an item", "silent source", "unanimous"],
)
def test_poor_votes_have_a_report(rows):
    model = plain_model(rows)
    page = Page(report_html(model, rows, [0] * len(rows)))
    assert set(SECTIONS) <= set(page.ids)
    assert not {"nan", "inf"} & set(page.text.split())
    nothing = np.full((4, len(rows[0])), -1)
    assert "0 of 4 items labeled" in Page(report_html(model, nothing, [1] * 4)).text
    parts = cs.partitions.InMemoryPartitions.of(cs.Votes.from_matrix(rows))
    assert report_html(model, parts) == report_html(model, rows)


def test_soft_votes_and_sets_are_shown_with_their_shares_and_labels_of_ones_own_as_text():
    votes = [[[0.7, 0.3], [0.2, 0.8], [0.9, 0.1]], [[0.1, 0.9], [0.4, 0.6], [0.2, 0.8]]] * 10
    soft = cs.Votes.from_array(np.array(votes))
    assert "cat 70%" in Page(report_html(plain_model(soft, cs.Classes(["cat", "dog"])), soft)).text
    hidden = cs.Votes.from_array([[{"cat", "dog"}, "cat", "dog"], ["dog", "dog", {"dog"}]] * 10)
    assert "dog 50%" in Page(report_html(plain_model(hidden, cs.Classes(["cat", "dog"])), hidden)).text
    space = cs.Metric(lambda left, right: float(abs(len(left) - len(right))))
    own = cs.Votes.from_array(np.array([["a&b", "<i>", "abcd"], ["x", "yy", "zz"]] * 9, dtype=object))
    assert "<i>" in Page(report_html(plain_model(own, space), own)).text


def test_a_finding_has_a_next_step_and_stands_beside_its_sources(pages):
    votes = cs.Votes.from_matrix([[0, 0], [1, 1]] * 9)
    assert "Add sources" in Page(report_html(plain_model(votes), votes)).text
    row = re.search(r"<tr class=marked>(?:(?!</tr>).)*shop_a.*?</tr>", pages("taxonomy"))
    assert row is not None
    assert "dependent-pair" in row.group()


def test_writing_makes_one_file_replaces_it_only_by_force_and_leaves_none_if_it_fails(tmp_path):
    rows = [[0, 0, 1], [1, 1, 1]] * 10
    model, path = plain_model(rows), tmp_path / "page.html"
    with pytest.raises(NotFittedError, match=r"Call fit\(votes\) first"):
        cs.write_report(path, cs.LabelModel(cs.Classes(2)), rows)
    with pytest.raises(SourceMismatchError, match="2 sources"):
        cs.write_report(path, model, [[0, 1]])
    with pytest.raises(NotFittedError, match="not list"):
        cs.write_report(path, rows, model)
    assert list(tmp_path.iterdir()) == []
    cs.write_report(path, model, rows, title="first \ud800")  # half a character pair
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    before = path.read_text(encoding="utf-8")
    with pytest.raises(FileFormatError, match="already exists"):
        cs.write_report(path, model, rows, title="second")
    assert path.read_text(encoding="utf-8") == before
    cs.write_report(path, model, rows, title="second", force=True)
    assert "<title>second</title>" in path.read_text(encoding="utf-8")
    with pytest.raises(FileFormatError, match="no folder"):
        cs.write_report(tmp_path / "nowhere" / "page.html", model, rows)


def test_contested_items_show_their_content_and_boxes_their_image(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    Image.new("RGB", (800, 600), "white").save(tmp_path / "street.png")
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 300, (40, 3, 2)) + rng.normal(0, 3, (40, 3, 2))
    rows = [[[(x, y, x + 80, y + 60)] for x, y in votes] for votes in corners]
    show = {"caption": [f"street <b>{n}</b>" for n in range(40)], "file": [str(tmp_path / "street.png")] * 40}
    page = report_html(plain_model(rows, cs.Boxes()), rows, show=show)
    assert "street &lt;b&gt;" in page
    assert '<image href="data:image/jpeg;base64,' in page
    assert 'width="332" height="249"' in page  # 800 x 600 in the frame of the picture
    classes = [[0, 1, 1], [0, 0, 1], [1, 0, 0]] * 10
    shown = report_html(plain_model(classes), classes, show={"file": [str(tmp_path / "street.png")] * 30})
    assert '<img src="data:image/jpeg;base64,' in shown
    assert "img-src data:" in shown
    with pytest.raises(cs.exceptions.InvalidVotesError, match="2 rows in column 'caption', and there are 30 items"):
        report_html(plain_model(classes), classes, show={"caption": ["a", "b"]})


def test_verdict_compares_with_known_labels_and_labels_that_nobody_voted_for_are_explained(pages):
    page = pages("taxonomy")
    verdict = Page(page[page.index('<section id="verdict"') : page.index('<section id="findings"')]).text
    assert re.search(r"of the labels \(\d+\) would be different, by 0\.\d+ on average\. On 250 known labels: ", verdict)
    assert re.search(r"known labels: accuracy \d+%, plain vote \d+%\.", verdict)
    for article in page.split("<article ")[1:]:
        distances = re.findall(r'<td class="number">([\d.]+)</td></tr>', article)
        if "more votes" not in article:
            assert ("No source voted for this label." in article) == all(float(one) > 0 for one in distances)
    assert 'tabindex="0" role="region" aria-label="Sources"' in page
