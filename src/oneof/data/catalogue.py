"""Known data sets: their shapes and classes, and their published files with checksums and addresses."""

from dataclasses import dataclass
from typing import Literal

ImageName = Literal["mnist", "fashion-mnist", "kuzushiji-mnist", "cifar-10", "cifar-100"]
TableName = Literal["lost", "birdsong", "msrcv2", "soccer-player", "yahoo-news", "fg-net"]
VoteName = Literal["cifar-10h"]


@dataclass(frozen=True)
class File:
    """A published file."""

    path: str  # under the root
    size: int  # in bytes
    sha256: str  # empty where none is known: such a file is never downloaded
    urls: tuple[str, ...] = ()
    other: str = ""  # another path under which it may lie


@dataclass(frozen=True)
class Archive:
    """A published tar.gz file whose members have the paths of the files of the data set."""

    urls: tuple[str, ...]
    size: int
    md5: str


@dataclass(frozen=True)
class Dataset:
    """A data set; the images of ``format`` idx and cifar come as training and test part, others as one."""

    name: str
    format: Literal["idx", "cifar", "mat", "votes", "own"]
    rows: tuple[int, ...]  # of training and test part, or of all
    shape: tuple[int, ...]  # of a row
    classes: tuple[str, ...] | tuple[int, ...]
    set_size: float  # candidates a row, on average
    licence: str
    source: str
    files: tuple[File, ...]
    archive: Archive | None = None
    label_bytes: int = 1  # of a row, in format cifar


# The 20 superclasses and their 100 classes; both are numbered in alphabetical order.
_CIFAR100 = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
_SUPERCLASS = {fine: number for number, names in enumerate(_CIFAR100.values()) for fine in names.split()}
_FINE = sorted(_SUPERCLASS)

#: The number of the superclass (0 to 19) of each class (0 to 99) of CIFAR-100.
CIFAR100_SUPERCLASSES = tuple(_SUPERCLASS[fine] for fine in _FINE)

_DIGITS = tuple(range(10))
_KANA = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
_CLOTHES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_IDX_FILES = tuple(
    f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
)
_KRIZ = "https://www.cs.toronto.edu/~kriz"
_PALM = "https://palm.seu.edu.cn/zhangml/Resources.htm#partial_data"
_GITHUB = "https://raw.githubusercontent.com"
_PL_CL = f"{_GITHUB}/Chongjie-Si/PL-CL/d17d1953c0ae73303c8f23ae8261ec2e9039c27e/dataset"
_REALWORLD = f"{_GITHUB}/pruirui/partial_label_realworld_dataset/a43c823f1cf2575e7fc74bcdfc307463e0bd44bd"


def _idx(
    name: str,
    classes: tuple[str, ...] | tuple[int, ...],
    licence: str,
    source: str,
    bases: tuple[str, ...],
    *files: tuple[int, str],
) -> Dataset:
    """Describe 60000 training and 10000 test images of 28 x 28 bytes in four idx files."""
    return Dataset(
        name,
        "idx",
        rows=(60000, 10000),
        shape=(28, 28),
        classes=classes,
        set_size=1.0,
        licence=licence,
        source=source,
        files=tuple(
            File(f"{name}/{file}", size, sha256, tuple(f"{base}/{file}" for base in bases))
            for file, (size, sha256) in zip(_IDX_FILES, files, strict=True)
        ),
    )


def _cifar(
    name: str,
    classes: tuple[str, ...],
    label_bytes: int,
    archive: tuple[str, int, str],
    *files: tuple[str, int, str],
) -> Dataset:
    """Describe 50000 training and 10000 test images of 32 x 32 pixels in CIFAR's binary version."""
    file, size, md5 = archive
    return Dataset(
        name,
        "cifar",
        rows=(50000, 10000),
        shape=(32, 32, 3),
        classes=classes,
        set_size=1.0,
        licence="none stated, used for research",
        source=f"{_KRIZ}/cifar.html",
        files=tuple(File(*entry) for entry in files),
        archive=Archive((f"{_KRIZ}/{file}",), size, md5),
        label_bytes=label_bytes,
    )


def _mat(
    name: str,
    file: str,
    shape: tuple[int, int, int],
    set_size: float,
    size: int = 0,
    sha256: str = "",
    bases: tuple[str, ...] = (),
) -> Dataset:
    """Describe a table with real candidate sets; ``shape`` is rows, features, classes."""
    rows, features, classes = shape
    return Dataset(
        name,
        "mat",
        rows=(rows,),
        shape=(features,),
        classes=tuple(range(classes)),
        set_size=set_size,
        licence="academic use only, at your own risk",
        source=_PALM,
        files=(File(f"realworld/{file}", size, sha256, tuple(f"{base}/{file}" for base in bases)),),
    )


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        _idx(
            "mnist",
            _DIGITS,
            "CC BY-SA 3.0",
            "http://yann.lecun.com/exdb/mnist/",
            (
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                "https://storage.googleapis.com/cvdf-datasets/mnist",
            ),
            (9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            (28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            (1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            (4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ),
        _idx(
            "fashion-mnist",
            _CLOTHES,
            "MIT",
            "https://github.com/zalandoresearch/fashion-mnist",
            (
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                f"{_GITHUB}/zalandoresearch/fashion-mnist/master/data/fashion",
            ),
            (26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            (29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            (4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            (5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        ),
        _idx(
            "kuzushiji-mnist",
            _KANA,
            "CC BY-SA 4.0",
            "http://codh.rois.ac.jp/kmnist/",
            ("http://codh.rois.ac.jp/kmnist/dataset/kmnist", "https://codh.rois.ac.jp/kmnist/dataset/kmnist"),
            (18165135, "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4"),
            (29497, "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17"),
            (3041136, "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5"),
            (5120, "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"),
        ),
        _cifar(
            "cifar-10",
            _THINGS,
            1,
            ("cifar-10-binary.tar.gz", 170052171, "c32a1d4ab5d03f1284b67883e8d87530"),
            *(
                (f"cifar-10-batches-bin/{file}.bin", 30730000, sha256)
                for file, sha256 in {
                    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
                }.items()
            ),
        ),
        _cifar(
            "cifar-100",
            tuple(_FINE),
            2,
            ("cifar-100-binary.tar.gz", 168513733, "03b5dce01913d631647c71ecec9e9cb8"),
            (
                "cifar-100-binary/train.bin",
                153700000,
                "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
            ),
            (
                "cifar-100-binary/test.bin",
                30740000,
                "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
            ),
        ),
        _mat(
            "lost",
            "lost.mat",
            (1122, 108, 16),
            2.2317,
            936096,
            "42a8cc43e05578087e7b8ca194647829ec535dc4d0a86cf47f357c5eb3146e4f",
            (_PL_CL, _REALWORLD),
        ),
        _mat(
            "birdsong",
            "BirdSong.mat",
            (4998, 38, 13),
            2.1755,
            1052915,
            "2170d46765a151ac80623d9a1242e0299802236e5574442bdb596bef90f50743",
            (_REALWORLD,),
        ),
        _mat(
            "msrcv2",
            "MSRCv2.mat",
            (1758, 48, 23),
            3.1564,
            381088,
            "948e4d443a5450308f05aa689bc82d9bcc7af699a113a6a81c40ef337a20c393",
            (_PL_CL, _REALWORLD),
        ),
        _mat("soccer-player", "Soccer Player.mat", (17472, 279, 171), 2.09),
        _mat("yahoo-news", "Yahoo! News.mat", (22991, 163, 219), 1.91),
        _mat(
            "fg-net",
            "FG-NET.mat",
            (1002, 262, 78),
            7.4770,
            2024494,
            "5b8d43e40cee007f6438a7a74d600b5cf67ac596754a322ce91b0fc6811f45db",
            (_PL_CL, _REALWORLD),
        ),
    )
}

# The test images of CIFAR-10, each with about 51 votes.
DATASETS["cifar-10h"] = Dataset(
    "cifar-10h",
    "votes",
    rows=(10000,),
    shape=(32, 32, 3),
    classes=_THINGS,
    set_size=1.9404,
    licence="CC BY-NC-SA 4.0 (votes)",
    source="https://github.com/jcpeterson/cifar-10h",
    files=(
        DATASETS["cifar-10"].files[-1],
        File("cifar-10h/cifar10h-counts.npy", 0, "", other="cifar-10h/counts.npz"),
    ),
    archive=DATASETS["cifar-10"].archive,
)
